/* A customer's view of its players and their money: transactions, players, statements, and all
 * entries in the order of their commits. */
#include "account/call.h"
#include "operator/documents.h"
#include "operator/players.h"
#include "wallet/error_rows.h"

/* ---- a transaction --------------------------------------------------------------------------- */

static enum status show_transaction(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct ledger_fact fact;
    enum status status = viewer_find_transaction(
        call->store, &call->viewer,
        asked->provider[0] != '\0' ? asked->provider : call->caller.customer_id, asked->id, &fact,
        error);
    if (status == STATUS_OK)
        wallet_write_fact(&call->json, &fact);
    return status;
}

const struct account_act account_transactions = {.name = "transactions",
                                                 .area = KEY_ACCOUNT,
                                                 .handle = show_transaction,
                                                 .parameters = {&account_id, &account_provider},
                                                 .required = &account_id,
                                                 .missing = &error_transaction_not_found};

/* ---- players --------------------------------------------------------------------------------- */

static enum status write_player(struct account_call *call, const char *player_id,
                                struct error *error)
{
    struct json_writer *json = &call->json;
    static const char *const names[] = {
        "player_id",  "player_reference", "currency",       "currency_exponent", "balance_minor",
        "blocked_at", "blocked_until",    "last_active_at", "created_at",        NULL};
    struct player_view player;
    int64_t first_ms = 0;
    enum status status =
        players_find(call->store, &(struct player_question){.id = player_id}, &player, error);
    if (status == STATUS_OK)
        status = platform_ledger_entry_made(call->store, player_id, 1, &first_ms, error);
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

static enum status list_players(struct account_call *call, struct error *error)
{
    const struct account_asked *asked = &call->asked;
    struct player_record players[PLAYERS_NAMED_MAX];
    struct ledger_account account;
    size_t count = 0;
    if ((asked->reference[0] != '\0') == (asked->player_id[0] != '\0'))
        return error_invalid(error, "reference: must be given, or player_id, and not both");
    enum status status = STATUS_OK;
    if (asked->player_id[0] != '\0') {
        status = viewer_account(call->store, &call->viewer, asked->player_id, &account, error);
        players[count++] = account.player;
    } else {
        status = platform_players_named(call->store, call->caller.customer_id, asked->reference,
                                        players, PLAYERS_NAMED_MAX, &count, error);
    }
    if (status == STATUS_OK && count == 0)
        status = STATUS_NOT_FOUND;
    json_array(&call->json, "players");
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = write_player(call, players[i].id, error);
    json_end(&call->json);
    json_null(&call->json, "next_cursor");
    return status;
}

const struct account_act account_players = {.name = "players",
                                            .area = KEY_ACCOUNT,
                                            .handle = list_players,
                                            .parameters = {&account_reference, &account_player_id},
                                            .missing = &error_player_not_found};

/* ---- entries --------------------------------------------------------------------------------- */

static enum status show_statement(struct account_call *call, struct error *error)
{
    struct viewer_statement asked = {
        .player_id = call->asked.player_id, .before = call->from, .newest_first = true};
    uint64_t next = 0;
    json_array(&call->json, "statement");
    enum status status = viewer_read_page(call->store, &call->viewer, &asked, call->asked.limit,
                                          &next, wallet_list_entry, &call->json, error);
    json_end(&call->json);
    if (next > 0)
        (void)snprintf(call->next, sizeof call->next, "%" PRIu64, next);
    return status;
}

const struct account_act account_statement = {
    .name = "statement",
    .area = KEY_ACCOUNT,
    .handle = show_statement,
    .parameters = {&account_player_id, &account_limit, &account_cursor},
    .required = &account_player_id,
    .missing = &error_player_not_found};

/* The number is the house's, and not shown. */
static bool write_numbered(void *context, int64_t number, const struct ledger_transaction *entry)
{
    (void)number;
    return wallet_list_entry(context, entry);
}

/* A wait reads entries of other customers again with each look, of which so many numbers at most.
 * Where there are more, the answer leads past them. */
#define PASSED_AGAIN 1000

/* A cursor holds the number of the last entry that was read, and its hash. */
static enum status list_entries(struct account_call *call, struct error *error)
{
    struct ledger_tail tail = {
        .place = (int64_t)call->from, .known = call->from != 0, .limit = call->asked.limit};
    char hash[2 * LEDGER_HASH_SIZE + 1] = "";
    if (tail.known && !hex_read(call->beside, tail.hash, sizeof tail.hash))
        return account_refuse_cursor(error);
    json_array(&call->json, "entries");
    size_t before = call->answer.size;
    enum status status =
        viewer_read_tail(call->store, &call->viewer, &tail, write_numbered, &call->json, error);
    call->is_empty = call->answer.size == before && tail.place - (int64_t)call->from < PASSED_AGAIN;
    json_end(&call->json);
    if (tail.lost)
        return error_invalid(error,
                             "cursor: leads on from an entry that the ledger does not have: it was "
                             "restored from a backup, or moved to another engine");
    json_bool(&call->json, "more", tail.more);
    hex_write(hash, tail.hash, sizeof tail.hash);
    (void)snprintf(call->next, sizeof call->next, tail.place > 0 ? "%" PRId64 ":%s" : "%" PRId64,
                   tail.place, hash);
    return status;
}

const struct account_act account_entries = {.name = "entries",
                                            .area = KEY_ACCOUNT,
                                            .handle = list_entries,
                                            .parameters = {&account_limit, &account_cursor}};
