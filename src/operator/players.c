/* Players as an operator handles them; see players.h. */
#include "operator/players.h"

#include "records/currency.h"
#include "stores/platform_entries.h"

/* ---- the fields ------------------------------------------------------------------------------ */

static bool write_balance(const struct field *field, const void *record,
                          const struct field_output *out)
{
    const struct player_view *player = record;
    char amount[CURRENCY_AMOUNT_SIZE];
    if (out->json != NULL) {
        json_integer(out->json, field->name, player->balance_minor);
        return true;
    }
    currency_format(player->balance_minor, player->record.currency_exponent, amount);
    buffer_append_format(out->text, "%s %s", amount, player->record.currency);
    return true;
}

static const struct field_type balance_type = {write_balance, NULL};

static const struct field fields[] = {
    {"player_id", "player", NULL, &field_text, FIELD_OF(player_record, id)},
    {"customer", "customer", NULL, &field_text, FIELD_OF(player_record, customer_id)},
    {"player_reference", "reference", NULL, &field_text, FIELD_OF(player_record, reference)},
    {"currency", NULL, NULL, &field_text, FIELD_OF(player_record, currency)},
    {"currency_exponent", NULL, NULL, &field_exponent, FIELD_OF(player_record, currency_exponent)},
    {"balance_minor", "balance", NULL, &balance_type, FIELD_OF(player_view, balance_minor)},
    {"entries", "entries", NULL, &field_count, FIELD_OF(player_view, entries)},
    {"last_active_at", "active", NULL, &field_time, FIELD_OF(player_view, active_ms),
     .words = "never"},
    {"blocked_at", "blocked", NULL, &field_time, FIELD_OF(player_view, blocked_ms), .words = "no"},
    {"blocked_until", NULL, NULL, &field_time, FIELD_OF(player_view, blocked_until_ms)},
    {"created_at", "created", NULL, &field_time, FIELD_OF(player_record, created_ms)},
    {0},
};

static const struct field launch_fields[] = {
    {"launch_id", .type = &field_text, FIELD_OF(launch_record, id)},
    {"provider", .type = &field_text, FIELD_OF(launch_record, provider_id)},
    {"provider_player_id", .type = &field_text, FIELD_OF(launch_record, subject)},
    {"game_id", .type = &field_text, FIELD_OF(launch_record, game_id)},
    {"created_at", .type = &field_time, FIELD_OF(launch_record, created_ms)},
    {0},
};

static void write(struct json_writer *json, const void *record)
{
    const struct player_view *player = record;
    json_object(json, NULL);
    fields_write(fields, record, json);
    if (!player->listed)
        json_array(json, "launches");
    for (size_t i = 0; i < player->launch_count; i++)
        fields_write_object(launch_fields, &player->launches[i], json);
    if (!player->listed)
        json_end(json);
    json_array(json, "blocks");
    for (size_t i = 0; i < player->block_count; i++)
        resource_write(&block_resource, &player->blocks[i], json);
    json_end(json);
    json_end(json);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Those in force: they began with the first, and end with the last. */
static enum status find_blocks(struct platform_store *store, struct player_view *player,
                               struct error *error)
{
    const struct player_record *record = &player->record;
    char by_operator[BLOCK_ID_SIZE], by_customer[BLOCK_ID_SIZE];
    const char *const ids[PLAYER_BLOCKS] = {record->id, by_operator, by_customer};
    enum status status = STATUS_OK;
    block_name(by_operator, record->customer_id, record->reference, false);
    block_name(by_customer, record->customer_id, record->reference, true);
    player->block_count = 0;
    player->blocked_ms = player->blocked_until_ms = 0;
    for (size_t i = 0; i < PLAYER_BLOCKS && status == STATUS_OK && record->blocked_until_ms != 0;
         i++) {
        struct block_view *block = &player->blocks[player->block_count];
        status = resource_get(&block_resource, store, ids[i], block, error);
        if (status != STATUS_OK || !block->blocked)
            continue;
        player->block_count++;
        if (player->blocked_ms == 0 || block->record.blocked_ms < player->blocked_ms)
            player->blocked_ms = block->record.blocked_ms;
    }
    if (player->block_count > 0 && record->blocked_until_ms != PLAYER_BLOCKED_FOR_GOOD)
        player->blocked_until_ms = record->blocked_until_ms;
    return status;
}

/* Reads what the view of a player has beside the record. */
static enum status complete(struct platform_store *store, struct player_view *player,
                            struct error *error)
{
    struct ledger_account account;
    enum status status = platform_ledger_balance(store, player->record.id, &account, error);
    if (status != STATUS_OK)
        return status;
    player->balance_minor = account.balance_minor;
    player->entries = account.sequence;
    player->active_ms = 0;
    if (account.sequence > 0)
        status = platform_ledger_entry_made(store, player->record.id, account.sequence,
                                            &player->active_ms, error);
    if (status == STATUS_OK)
        status = find_blocks(store, player, error);
    if (status != STATUS_OK)
        return status;
    return platform_launches_newest(store, player->record.id, player->launches,
                                    PLAYER_LAUNCHES_SHOWN, &player->launch_count, error);
}

enum status players_view(struct platform_store *store, const struct listed_player *listed,
                         struct player_view *player, struct error *error)
{
    *player = (struct player_view){.record = listed->account.player,
                                   .balance_minor = listed->account.balance_minor,
                                   .entries = listed->account.sequence,
                                   .active_ms = listed->active_ms,
                                   .listed = true};
    return find_blocks(store, player, error);
}

static enum status get(struct platform_store *store, const char *id, void *record,
                       struct error *error)
{
    struct player_view *player = record;
    enum status status = platform_get(store, &player_table, id, &player->record, error);
    if (status == STATUS_NOT_FOUND)
        return resource_missing(&player_resource, id, error);
    return status == STATUS_OK ? complete(store, player, error) : status;
}

#define NAMED_MAX 14 /* in an error's text */

static enum status find_named(struct platform_store *store, const struct player_question *question,
                              struct player_view *player, struct error *error)
{
    struct player_record found[PLAYERS_NAMED_MAX];
    struct buffer text = {0};
    size_t count = 0;
    enum status status = platform_players_named(store, question->customer_id, question->reference,
                                                found, PLAYERS_NAMED_MAX, &count, error);
    if (status != STATUS_OK)
        return status;
    if (count == 0)
        return error_not_found(error, "customer '%s' has no player '%s'", question->customer_id,
                               question->reference);
    player->record = found[0];
    if (count == 1)
        return complete(store, player, error);
    for (size_t i = 0; i < count && i < NAMED_MAX; i++)
        buffer_append_format(&text, "%s%s (%s)", i == 0 ? "" : ", ", found[i].id,
                             found[i].currency);
    if (count > NAMED_MAX)
        buffer_append_format(&text, " and %zu others", count - NAMED_MAX);
    status = error_set(error, STATUS_EXISTS, "'%s' has a player for each currency: %s",
                       question->reference, buffer_string(&text));
    buffer_free(&text);
    return status;
}

static enum status find_launched(struct platform_store *store, const char *launch_id,
                                 struct player_view *player, struct error *error)
{
    struct launch_record launch;
    enum status status = platform_get(store, &launch_table, launch_id, &launch, error);
    if (status == STATUS_NOT_FOUND)
        return error_set(error, status, "there is no launch '%s'", launch_id);
    if (status == STATUS_OK && launch.player_id[0] == '\0')
        return error_not_found(
            error, "launch '%s' is a demo, of game '%s' for customer %s: it has no player",
            launch_id, launch.game_id, launch.customer_id);
    return status == STATUS_OK ? get(store, launch.player_id, player, error) : status;
}

static enum status find_known(struct platform_store *store, const struct player_question *question,
                              struct player_view *player, struct error *error)
{
    struct launch_look_up look_up = {
        .provider_id = question->provider_id, .subject = question->subject, .launch_id = ""};
    enum status status = platform_launches_find(store, &look_up, 1, error);
    if (status == STATUS_OK && !look_up.known)
        return error_not_found(error, "no player was launched as '%s' with '%s'", question->subject,
                               question->provider_id);
    return status == STATUS_OK ? get(store, look_up.player_id, player, error) : status;
}

enum status players_find(struct platform_store *store, const struct player_question *question,
                         struct player_view *player, struct error *error)
{
    if (question->launch_id != NULL)
        return find_launched(store, question->launch_id, player, error);
    if (question->provider_id != NULL)
        return find_known(store, question, player, error);
    if (question->reference != NULL)
        return find_named(store, question, player, error);
    return get(store, question->id, player, error);
}

const struct resource player_resource = {
    RESOURCE(RECORD_PLAYER, player_view, fields),
    .write = write,
    .get = get,
};
