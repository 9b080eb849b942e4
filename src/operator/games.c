/* Games as an operator handles them; see games.h. */
#include "operator/games.h"

#include "base/clock.h"
#include "games/document.h"
#include "operator/customers.h"
#include "operator/option_texts.h"

/* ---- the fields ------------------------------------------------------------------------------ */

static bool write_rtp(const struct field *field, const void *record, const struct field_output *out)
{
    int32_t rtp_bps = *(const int32_t *)field_value(field, record);
    buffer_append_format(out->text, "%d.%02d %%", (int)rtp_bps / 100, (int)rtp_bps % 100);
    return rtp_bps >= 0;
}

static const struct field_type rtp_type = {write_rtp, NULL};

static const struct field fields[] = {
    {NULL, "id", "ID", &field_text, FIELD_OF(game_record, id)},
    {NULL, "name", "NAME", &field_text, FIELD_OF(game_record, name)},
    {NULL, "provider", "PROVIDER", &field_text, FIELD_OF(game_record, provider_id)},
    {"enabled", "enabled", NULL, &field_yes_no, FIELD_OF(game_record, enabled)},
    {NULL, "usable", NULL, &field_usable, FIELD_OF(game_record, usable),
     .words = "no: the stored record cannot be read, so it is hidden; import it again"},
    {NULL, "category", "CATEGORY", &field_text, FIELD_OF(game_record, category)},
    {NULL, NULL, "ENABLED", &field_enabled, OF_ENABLED(game_record)},
    {NULL, "features", NULL, &field_list, FIELD_OF(game_record, features)},
    {NULL, "rtp", NULL, &rtp_type, FIELD_OF(game_record, rtp_bps)},
    {NULL, "volatility", NULL, &field_word, FIELD_OF(game_record, volatility),
     .names = &game_volatilities, .words = "not known"},
    {NULL, "thumbnail", NULL, &field_text, FIELD_OF(game_record, thumbnail_url), .words = "none"},
    {NULL, "demo", "DEMO", &field_yes_no, FIELD_OF(game_record, demo)},
    {NULL, "currencies", NULL, &field_list, FIELD_OF(game_record, currencies)},
    {NULL, "languages", NULL, &field_list, FIELD_OF(game_record, languages)},
    {NULL, "devices", NULL, &field_list, FIELD_OF(game_record, devices)},
    {"blocked_countries", "not offered in", NULL, &field_list,
     FIELD_OF(game_record, blocked_countries), .set = field_set_countries,
     .option = OPTION_GAME_BLOCKED_COUNTRY},
    {NULL, "updated", "UPDATED (UTC)", &field_time, FIELD_OF(game_record, updated_ms)},
    {0},
};

/* ---- the store ------------------------------------------------------------------------------- */

static void write_game(struct json_writer *json, const void *record)
{
    game_record_write(json, record);
}

/* Only these two change, and with them `updated_ms`; an import sets the rest. */
static enum status put(struct platform_store *store, void *record, struct error *error)
{
    const struct game_record *game = record;
    struct game_record stored;
    enum status status = platform_get(store, &game_table, game->id, &stored, error);
    if (status != STATUS_OK)
        return status;
    if (stored.revision != game->revision)
        return STATUS_EXISTS;
    if (stored.enabled == game->enabled &&
        strcmp(stored.blocked_countries, game->blocked_countries) == 0)
        return STATUS_OK;
    status = platform_game_set(store, game, clock_wall_ms(), error);
    return status == STATUS_OK ? platform_get(store, &game_table, stored.id, record, error)
                               : status;
}

const struct resource game_resource = {
    RESOURCE(RECORD_GAME, game_record, fields),
    .write = write_game,
    .put = put,
};

/* ---- import ---------------------------------------------------------------------------------- */

/* Providers are few: their ids are one list. */
static bool note_provider(void *context, const void *record)
{
    buffer_append_format(context, "%s\n", ((const struct provider_record *)record)->id);
    return true;
}

static bool has_provider(void *context, struct text id)
{
    return game_list_has(buffer_text(context), id);
}

enum status games_import(struct platform_store *store, const char *name, struct text document,
                         int64_t now_ms, struct games_put_result *result, struct error *error)
{
    struct buffer providers = {0};
    struct games_document read = {0};
    enum status status =
        platform_list(store, &provider_table, NULL, note_provider, &providers, error);
    if (status == STATUS_OK)
        status = games_document_read(&read, name, document, has_provider, &providers, error);
    if (status == STATUS_OK)
        status = platform_games_put(store, read.records, read.set_enabled, read.count, now_ms,
                                    result, error);
    games_document_free(&read);
    buffer_free(&providers);
    return status;
}

/* ---- games of customers ---------------------------------------------------------------------- */

static enum status read_casino(struct platform_store *store, const char *customer_id, bool *casino,
                               struct error *error)
{
    struct customer_view customer;
    enum status status = resource_get(&customer_resource, store, customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    *casino = customer.record.casino;
    return STATUS_OK;
}

enum status games_allow(struct platform_store *store, const struct game_policy_record *record,
                        bool *casino, struct error *error)
{
    enum status status = read_casino(store, record->customer_id, casino, error);
    return status == STATUS_OK ? platform_game_policy_put(store, record, error) : status;
}

struct policy_search {
    struct game_policy_record *record;
    struct buffer *games;
};

static bool find_policy(void *context, const void *visited)
{
    const struct game_policy_record *record = visited;
    struct policy_search *search = context;
    search->record->every_game = record->every_game;
    buffer_append_text(search->games, record->games);
    return true;
}

enum status games_allowed(struct platform_store *store, struct game_policy_record *record,
                          struct buffer *games, bool *casino, struct error *error)
{
    struct policy_search search = {record, games};
    enum status status = read_casino(store, record->customer_id, casino, error);
    if (status != STATUS_OK)
        return status;
    record->every_game = true;
    status =
        platform_list(store, &game_policy_table, record->customer_id, find_policy, &search, error);
    record->games = buffer_text(games);
    return status;
}
