/* What a customer sees of its players and their money: transactions, players, statements, and all
 * entries in the order of their commits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "account/call.h"
#include "operator/documents.h"
#include "operator/players.h"
#include "wallet/errors.h"

/* The answer of another customer's id is that of one which is not there. */
static enum status found(struct account_call *call, enum status status,
                         const struct http_error *missing, struct error *error)
{
    return status == STATUS_NOT_FOUND ? account_refuse(call, missing, error) : status;
}

/* ---- a transaction --------------------------------------------------------------------------- */

static enum status show_transaction(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct json_writer json = {.out = &call->answer};
    struct ledger_fact fact;
    enum status status = viewer_find_transaction(
        call->store, &call->viewer,
        asked->provider[0] != '\0' ? asked->provider : call->caller.customer_id, asked->id, &fact,
        error);
    if (status != STATUS_OK)
        return found(call, status, &error_transaction_not_found, error);
    json_object(&json, NULL);
    wallet_write_fact(&json, &fact);
    json_end(&json);
    return STATUS_OK;
}

const struct account_act account_transactions = {.name = "transactions",
                                                 .area = KEY_ACCOUNT,
                                                 .handle = show_transaction,
                                                 .parameters = {&account_id, &account_provider},
                                                 .required = &account_id};

/* ---- players --------------------------------------------------------------------------------- */

static bool note_time(void *context, const struct ledger_transaction *entry)
{
    *(int64_t *)context = entry->created_ms;
    return false;
}

static enum status write_player(struct account_call *call, const char *player_id,
                                struct json_writer *json, struct error *error)
{
    static const char *const names[] = {
        "player_id",  "player_reference", "currency",       "currency_exponent", "balance_minor",
        "blocked_at", "blocked_until",    "last_active_at", "created_at",        NULL};
    struct player_view player;
    int64_t first_ms = 0;
    enum status status =
        players_find(call->store, &(struct player_question){.id = player_id}, &player, error);
    if (status == STATUS_OK)
        status = viewer_read_statement(
            call->store, &call->viewer,
            &(struct viewer_statement){.player_id = player_id, .from = 1, .before = 2}, note_time,
            &first_ms, error);
    if (status != STATUS_OK)
        return status;
    bool by_customer = false;
    bool by_operator = false;
    for (size_t i = 0; i < player.block_count; i++)
        *(block_is_own(&player.blocks[i].record) ? &by_customer : &by_operator) = true;
    json_object(json, NULL);
    account_write_fields(json, &player_resource, names, &player);
    json_bool(json, "blocked_by_customer", by_customer);
    json_bool(json, "blocked_by_operator", by_operator);
    json_time(json, "first_active_at", first_ms);
    json_end(json);
    return STATUS_OK;
}

#define CURRENCIES_MAX 16 /* of one reference */

static enum status list_players(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct json_writer json = {.out = &call->answer};
    struct player_record players[CURRENCIES_MAX];
    struct ledger_account account;
    size_t count = 0;
    if ((asked->reference[0] != '\0') == (asked->player_id[0] != '\0'))
        return error_set(error, STATUS_INVALID,
                         "reference: must be given, or player_id, and not both");
    enum status status = STATUS_OK;
    if (asked->player_id[0] != '\0') {
        status = viewer_account(call->store, &call->viewer, asked->player_id, &account, error);
        players[count++] = account.player;
    } else {
        status = platform_players_named(call->store, call->caller.customer_id, asked->reference,
                                        players, CURRENCIES_MAX, &count, error);
    }
    if (status == STATUS_OK && count == 0)
        status = STATUS_NOT_FOUND;
    if (status != STATUS_OK)
        return found(call, status, &error_player_not_found, error);
    json_object(&json, NULL);
    json_array(&json, "players");
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = write_player(call, players[i].id, &json, error);
    json_end(&json);
    json_null(&json, "next_cursor");
    json_end(&json);
    return status;
}

const struct account_act account_players = {.name = "players",
                                            .area = KEY_ACCOUNT,
                                            .handle = list_players,
                                            .parameters = {&account_reference, &account_player_id}};

/* ---- entries --------------------------------------------------------------------------------- */

struct entries {
    struct json_writer json;
    size_t count;
};

static bool write_entry(void *context, const struct ledger_transaction *entry)
{
    struct entries *entries = context;
    entries->count++;
    json_object(&entries->json, NULL);
    wallet_write_transaction(&entries->json, entry);
    json_end(&entries->json);
    return true;
}

static enum status show_statement(struct account_call *call, struct error *error)
{
    struct entries entries = {.json = {.out = &call->answer}};
    struct viewer_statement asked = {.player_id = call->asked.player_id, .newest_first = true};
    uint64_t next = 0;
    char position[ACCOUNT_POSITION_SIZE] = "";
    if (call->position[0] != '\0' &&
        text_to_u64(text_of(call->position), INT64_MAX, &asked.before) != STATUS_OK)
        return error_set(error, STATUS_INVALID, "cursor: %s", account_cursor.rule);
    json_object(&entries.json, NULL);
    json_array(&entries.json, "statement");
    enum status status = viewer_read_page(call->store, &call->viewer, &asked, call->asked.limit,
                                          &next, write_entry, &entries, error);
    if (status != STATUS_OK)
        return found(call, status, &error_player_not_found, error);
    json_end(&entries.json);
    if (next > 0)
        (void)snprintf(position, sizeof position, "%" PRIu64, next);
    account_write_cursor(call, &entries.json, position);
    json_end(&entries.json);
    return STATUS_OK;
}

const struct account_act account_statement = {
    .name = "statement",
    .area = KEY_ACCOUNT,
    .handle = show_statement,
    .parameters = {&account_player_id, &account_limit, &account_cursor},
    .required = &account_player_id};

/* The number is the house's, and not shown. */
static bool write_numbered(void *context, int64_t number, const struct ledger_transaction *entry)
{
    (void)number;
    return write_entry(context, entry);
}

/* A cursor holds the number of the last entry that was read, and its hash. */
static bool read_place(const char *position, struct ledger_tail *tail)
{
    struct text hash = text_of(position);
    uint64_t number = 0;
    struct text digits = text_cut(&hash, ':');
    if (text_to_u64(digits, INT64_MAX, &number) != STATUS_OK ||
        !hex_read(hash, tail->hash, sizeof tail->hash))
        return false;
    tail->place = (int64_t)number;
    tail->known = true;
    return true;
}

static enum status list_entries(struct account_call *call, struct error *error)
{
    struct entries entries = {.json = {.out = &call->answer}};
    struct ledger_tail tail = {.limit = call->asked.limit};
    char position[ACCOUNT_POSITION_SIZE] = "0";
    char hash[2 * LEDGER_HASH_SIZE + 1] = "";
    if (call->position[0] != '\0' && strcmp(call->position, "0") != 0 &&
        !read_place(call->position, &tail))
        return error_set(error, STATUS_INVALID, "cursor: %s", account_cursor.rule);
    json_object(&entries.json, NULL);
    json_array(&entries.json, "entries");
    enum status status =
        viewer_read_tail(call->store, &call->viewer, &tail, write_numbered, &entries, error);
    if (tail.lost)
        return error_set(error, STATUS_INVALID,
                         "cursor: leads on from an entry that the ledger does not have: it was "
                         "restored from a backup");
    if (status != STATUS_OK)
        return status;
    json_end(&entries.json);
    json_bool(&entries.json, "more", tail.more);
    if (tail.place > 0) {
        hex_write(hash, tail.hash, sizeof tail.hash);
        (void)snprintf(position, sizeof position, "%" PRId64 ":%s", tail.place, hash);
    }
    account_write_cursor(call, &entries.json, position);
    json_end(&entries.json);
    return STATUS_OK;
}

const struct account_act account_entries = {.name = "entries",
                                            .area = KEY_ACCOUNT,
                                            .handle = list_entries,
                                            .parameters = {&account_limit, &account_cursor}};
