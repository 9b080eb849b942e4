/* Games, and which of them a customer may use: their rules and columns; see
 * game.h. */
#include "records/game.h"

static const char *const volatilities[] = {NULL, "low", "medium", "high"};

const struct enum_names game_volatilities = ENUM_NAMES(volatilities);

static enum status check_lists(const struct game_record *record, struct error *error)
{
    enum status status = game_list_check("features", record->features, game_word_is_sound, error);
    if (status == STATUS_OK)
        status = game_list_check("currencies", record->currencies, currency_is_sound, error);
    if (status == STATUS_OK)
        status = game_list_check("languages", record->languages, game_word_is_sound, error);
    if (status == STATUS_OK)
        status = game_list_check("devices", record->devices, game_word_is_sound, error);
    if (status == STATUS_OK)
        status = game_list_check("blocked_countries", record->blocked_countries, country_is_known,
                                 error);
    return status;
}

static enum status check(const void *checked, struct error *error)
{
    const struct game_record *record = checked;
    enum status status = game_id_check(record->id, error);
    if (status == STATUS_OK)
        status = game_id_check(record->provider_id, error);
    if (status != STATUS_OK)
        return status;
    if (!record_text_is_sound(record->name, sizeof record->name, 1) ||
        !record_text_is_sound(record->category, sizeof record->category, 1))
        return error_invalid(error, "name, category: must be UTF-8 without control characters");
    if (record->rtp_bps < -1 || record->rtp_bps > 10000)
        return error_invalid(error, "rtp_bps: must be 0 to 10000");
    if (record->thumbnail_url[0] != '\0')
        status = game_url_check("thumbnail_url", record->thumbnail_url, true, error);
    return status == STATUS_OK ? check_lists(record, error) : status;
}

static enum status check_policy(const void *checked, struct error *error)
{
    const struct game_policy_record *record = checked;
    CHECK(!record->every_game || record->games.size == 0);
    struct text rest = record->games;
    while (rest.size > 0)
        if (!game_id_is_sound(text_cut(&rest, '\n')))
            return error_invalid(error, "the list holds something that is no game id");
    return STATUS_OK;
}

/* ---- a game's columns ------------------------------------------------------------------------ */

static const struct column_type column_volatility = COLUMN_NAMES(&game_volatilities);

static const struct column columns[] = {
    COLUMN(game_record, id, column_text, 0),
    COLUMN(game_record, provider_id, column_text, 0),
    COLUMN(game_record, name, column_text, 0),
    COLUMN(game_record, category, column_text, 0),
    COLUMN(game_record, features, column_lines, 0),
    COLUMN(game_record, rtp_bps, column_known, 0),
    COLUMN(game_record, volatility, column_volatility, COLUMN_NULLABLE),
    COLUMN(game_record, thumbnail_url, column_text, COLUMN_NULLABLE),
    COLUMN(game_record, demo, column_flag, 0),
    COLUMN(game_record, currencies, column_lines, 0),
    COLUMN(game_record, languages, column_lines, 0),
    COLUMN(game_record, devices, column_lines, 0),
    COLUMN(game_record, blocked_countries, column_lines, 0),
    COLUMN(game_record, enabled, column_flag, 0),
    COLUMN(game_record, since_ms, column_integer, COLUMN_UNAUDITED),
    COLUMN(game_record, moved, column_text, COLUMN_UNAUDITED),
    COLUMN(game_record, updated_ms, column_integer, COLUMN_UNAUDITED),
    COLUMN(game_record, revision, column_revision, 0),
};

const struct record_table game_table = {
    RECORD_TABLE(RECORD_GAME, "game", "games", "game", game_record, columns),
    .order = "id",
    .counter = "games_revision",
    .usable = offsetof(struct game_record, usable),
    .checked = true,
    .check = check,
};

/* ---- a list's columns ------------------------------------------------------------------------ */

static const struct column policy_columns[] = {
    COLUMN(game_policy_record, customer_id, column_text, 0),
    COLUMN(game_policy_record, every_game, column_flag, 0),
    COLUMN(game_policy_record, games, column_borrowed, 0),
    COLUMN(game_policy_record, revision, column_revision, 0),
};

static bool settle_policy(void *record, bool sound)
{
    struct game_policy_record *policy = record;
    policy->every_game = policy->every_game && sound;
    if (policy->every_game || !sound)
        policy->games = TEXT("");
    return true;
}

const struct record_table game_policy_table = {
    RECORD_TABLE(RECORD_GAME_POLICY, "list of games", "lists of games", "customer_games",
                 game_policy_record, policy_columns),
    .order = "customer_id",
    .counter = "games_revision",
    .check = check_policy,
    .settle = settle_policy,
};
