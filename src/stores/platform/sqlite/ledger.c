/*
 * Writes a batch of the ledger into SQLite, in the transaction in which sqlite_ledger_begin loaded
 * it.
 *
 * The accounts of a batch may come from the cache. So each account is updated only where the stored
 * row equals the one that the batch was decided from, to the last byte. If no row is updated, this
 * program did not write the stored account, and the batch is rolled back.
 */
#include <string.h>

#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids.h"

#define DAY_MS 86400000

static void bind_if_given(sqlite3_stmt *statement, int at, const char *string)
{
    if (string[0] != '\0') /* else NULL */
        bind_string(statement, at, string);
}

/* A batch that is being written, with the numbers that its rows refer to. */
struct writing {
    struct sqlite_store *store;
    const struct ledger_batch *batch;
    int64_t first_number;                   /* of the first row of batch->kept */
    int64_t last_day;                       /* of ledger_day, including this batch */
    size_t players[LEDGER_BATCH_MAX];       /* of `kept` */
    int64_t customers[LEDGER_BATCH_MAX];    /* of `kept`, by number */
    int64_t last_entries[LEDGER_BATCH_MAX]; /* of the players, of those bound so far */
    uint16_t
        kept_of[2 * LEDGER_BATCH_MAX]; /* of facts, one more than its position in `kept`; 0: none */
};

static enum status refuse(const struct writing *writing, const char *why, struct error *error)
{
    return error_set(error, STATUS_INVALID, "%s: %s", writing->store->path, why);
}

/* A parameter: a text, a hash or an integer. */
struct value {
    int64_t integer;
    const char *text;
    const uint8_t *hash;
};

static struct value of_integer(int64_t integer)
{
    return (struct value){.integer = integer};
}

static struct value of_hash(const uint8_t hash[LEDGER_HASH_SIZE])
{
    return (struct value){.hash = hash};
}

/* Runs a statement that has to change one row, with as many of the values as it has parameters. If
 * it changes none, the stored row is not the one that the batch was decided from. */
static enum status change_one(struct writing *writing, const char *sql, const struct value *values,
                              struct error *error)
{
    struct sqlite_store *store = writing->store;
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
        if (values[i].text != NULL)
            bind_string(statement, i + 1, values[i].text);
        else if (values[i].hash != NULL)
            bind_blob(statement, i + 1, values[i].hash, LEDGER_HASH_SIZE);
        else
            bind_integer(statement, i + 1, values[i].integer);
    status = sqlite_run(store, statement, error);
    if (status == STATUS_OK && sqlite3_changes(store->database) != 1) {
        store->failed = true; /* and the cache cannot be trusted */
        status = platform_damaged(&store->base, "an account is not what was written", error);
    }
    return status;
}

/* ---- references of the rows ------------------------------------------------------------------ */

static bool is_of_fact(const struct ledger_batch *batch, size_t fact, const char *owner_id,
                       const char *id)
{
    return fact < batch->fact_count && strcmp(batch->facts[fact].transaction_id, id) == 0 &&
           strcmp(batch->facts[fact].owner_id, owner_id) == 0;
}

static enum status find_players(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    for (size_t i = 0; i < batch->kept_count; i++) {
        const struct ledger_transaction *kept = &batch->kept[i];
        const size_t player = ledger_player_of_kept(batch, i);
        if (player == batch->player_count)
            return refuse(writing, "a transaction is of a player that was not asked for", error);
        const struct ledger_stored *account = &writing->batch->loaded.players[player];
        if (strcmp(account->account.player.customer_id, kept->customer_id) != 0)
            return refuse(writing, "a transaction is not of its player's customer", error);
        writing->players[i] = player;
        writing->customers[i] = account->customer_number;
    }
    for (size_t player = 0; player < batch->player_count; player++)
        writing->last_entries[player] = writing->batch->loaded.players[player].last_number;
    return STATUS_OK;
}

/* The first of the kept transactions from `at` on with an id; kept_count: there is none. */
static size_t find_kept(const struct ledger_batch *batch, size_t at, const char *owner_id,
                        const char *id)
{
    while (at < batch->kept_count && (strcmp(batch->kept[at].transaction_id, id) != 0 ||
                                      strcmp(ledger_owner(&batch->kept[at]), owner_id) != 0))
        at++;
    return at;
}

/* An owner uses an id once. Begin has proved that for the ids that it was asked for; this function
 * looks up any other id before anything is written. */
static enum status check_unused(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    static const char used[] = "a transaction id is used once";
    for (size_t i = 0; i < batch->kept_count; i++) {
        const struct ledger_transaction *kept = &batch->kept[i];
        size_t fact = batch->kept_of[i].fact;
        if (is_of_fact(batch, fact, ledger_owner(kept), kept->transaction_id)) {
            if (batch->facts[fact].id.number != 0 || writing->kept_of[fact] != 0)
                return refuse(writing, used, error);
            writing->kept_of[fact] = (uint16_t)(i + 1);
            continue;
        }
        struct ledger_fact asked;
        ledger_ask(&asked, ledger_owner(kept), kept->transaction_id);
        enum status status = sqlite_load_id(writing->store, &asked, error);
        if (status != STATUS_OK)
            return status;
        if (asked.id.known || find_kept(batch, 0, ledger_owner(kept), kept->transaction_id) < i ||
            find_kept(batch, i + 1, ledger_owner(kept), kept->transaction_id) < batch->kept_count)
            return refuse(writing, used, error);
    }
    return STATUS_OK;
}

/* The number of the debit that a credit refers to: of this batch, or of one that was loaded, or is
 * asked for now. */
static enum status debit_number(struct writing *writing, size_t at, int64_t *number,
                                struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    const struct ledger_transaction *credit = &batch->kept[at];
    size_t fact = batch->kept_of[at].reference;
    if (is_of_fact(batch, fact, ledger_owner(credit), credit->reference)) {
        size_t position = writing->kept_of[fact];
        *number = position > 0 ? writing->first_number + (int64_t)position - 1
                               : batch->facts[fact].id.number;
        return STATUS_OK;
    }
    const size_t before = find_kept(batch, 0, ledger_owner(credit), credit->reference);
    if (before < at) {
        *number = writing->first_number + (int64_t)before;
        return STATUS_OK;
    }
    struct ledger_fact asked;
    ledger_ask(&asked, ledger_owner(credit), credit->reference);
    enum status status = sqlite_load_id(writing->store, &asked, error);
    *number = asked.id.number;
    return status;
}

/* ---- transactions ---------------------------------------------------------------------------- */

#define TRANSACTION_INSERT                                                                  \
    "INSERT INTO ledger_transaction (number, customer_number, player_number, amount_minor," \
    " created_ms, transaction_id, operation, outcome, reference, game, round_id, sequence," \
    " movement_minor, balance_minor, hash, settles, previous, provider, launch,"            \
    " kind, round_ended) VALUES "
#define TRANSACTION_ROW "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define TRANSACTION_ROW_SIZE 21

static void bind_entry(struct writing *writing, sqlite3_stmt *statement, int at, size_t kept_at)
{
    const struct ledger_transaction *kept = &writing->batch->kept[kept_at];
    /* The player's entry before this one, which may be of this batch: so rows go in order. */
    int64_t *last = &writing->last_entries[writing->players[kept_at]];
    bind_integer(statement, at + 11, (int64_t)kept->sequence);
    bind_integer(statement, at + 12, kept->movement_minor);
    bind_integer(statement, at + 13, kept->balance_minor);
    bind_blob(statement, at + 14, kept->hash, LEDGER_HASH_SIZE);
    bind_integer(statement, at + 16, *last);
    *last = writing->first_number + (int64_t)kept_at;
}

/* `at` is the row's first parameter. */
static enum status bind_transaction(struct writing *writing, sqlite3_stmt *statement, int at,
                                    size_t kept_at, struct error *error)
{
    const struct ledger_transaction *kept = &writing->batch->kept[kept_at];
    const struct ledger_stored *account =
        &writing->batch->loaded.players[writing->players[kept_at]];
    int64_t debit = 0;
    enum status status = STATUS_OK;
    if (kept->operation == LEDGER_CREDIT && kept->outcome == LEDGER_APPLIED &&
        kept->reference[0] != '\0')
        status = debit_number(writing, kept_at, &debit, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, at, writing->first_number + (int64_t)kept_at);
    bind_integer(statement, at + 1, account->customer_number);
    bind_integer(statement, at + 2, account->player_number);
    bind_integer(statement, at + 3, kept->amount_minor);
    bind_integer(statement, at + 4, kept->created_ms);
    bind_string(statement, at + 5, kept->transaction_id);
    bind_string(statement, at + 6, ledger_operation_name(kept->operation));
    bind_string(statement, at + 7, ledger_outcome_name(kept->outcome));
    bind_if_given(statement, at + 8, kept->reference);
    bind_if_given(statement, at + 9, kept->game_id);
    bind_if_given(statement, at + 10, kept->round_id);
    if (debit != 0) /* else NULL, as what follows of a decline */
        bind_integer(statement, at + 15, debit);
    bind_integer(statement, at + 16, 0);
    bind_if_given(statement, at + 17, kept->provider_id);
    bind_if_given(statement, at + 18, kept->launch_id);
    if (kept->kind != LEDGER_WIN)
        bind_string(statement, at + 19, enum_name(&ledger_kinds, kept->kind));
    if (kept->round_ended)
        bind_integer(statement, at + 20, 1);
    if (ledger_is_entry(kept))
        bind_entry(writing, statement, at, kept_at);
    return STATUS_OK;
}

static enum status insert_transactions(struct writing *writing, size_t first, size_t count,
                                       struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        writing->store, SQLITE_WRITE_ROWS(count, TRANSACTION_INSERT, TRANSACTION_ROW, ""),
        &statement, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = bind_transaction(writing, statement, 1 + TRANSACTION_ROW_SIZE * (int)i, first + i,
                                  error);
    return status == STATUS_OK ? sqlite_run(writing->store, statement, error) : status;
}

static enum status write_decline(struct writing *writing, size_t at, struct error *error)
{
    const struct ledger_transaction *decline = &writing->batch->kept[at];
    const struct ledger_stored *player = &writing->batch->loaded.players[writing->players[at]];
    const struct value values[] = {
        of_integer(player->player_number), of_integer((int64_t)decline->decline),
        of_integer(writing->first_number + (int64_t)at), of_hash(decline->hash)};
    return change_one(writing,
                      "INSERT INTO ledger_decline (player_number, position, transaction_number,"
                      " hash) VALUES (?1, ?2, ?3, ?4)",
                      values, error);
}

/* A row where the day is another than that of the transaction before. */
static enum status write_day(struct writing *writing, size_t at, struct error *error)
{
    int64_t day = writing->batch->kept[at].created_ms / DAY_MS;
    const struct value values[] = {of_integer(writing->first_number + (int64_t)at),
                                   of_integer(day)};
    if (day == writing->last_day)
        return STATUS_OK;
    writing->last_day = day;
    return change_one(writing, "INSERT INTO ledger_day (first_number, day) VALUES (?1, ?2)", values,
                      error);
}

static enum status write_kept(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    enum status status = STATUS_OK;
    for (size_t i = 0, rows; i < batch->kept_count && status == STATUS_OK; i += rows) {
        rows = sqlite_rows_next(batch->kept_count - i);
        status = insert_transactions(writing, i, rows, error);
    }
    for (size_t i = 0; i < batch->kept_count && status == STATUS_OK; i++) {
        status = write_day(writing, i, error);
        if (status == STATUS_OK && !ledger_is_entry(&batch->kept[i]))
            status = write_decline(writing, i, error);
    }
    return status;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static enum status write_account(struct writing *writing, size_t player, struct error *error)
{
    const struct ledger_account *account = &writing->batch->players[player].account;
    const struct ledger_stored *stored = &writing->batch->loaded.players[player];
    const struct value values[] = {of_integer(stored->player_number),
                                   of_integer(account->balance_minor),
                                   of_integer((int64_t)account->sequence),
                                   of_hash(account->head),
                                   of_integer(writing->last_entries[player]),
                                   of_integer(stored->account.balance_minor),
                                   of_integer((int64_t)stored->account.sequence),
                                   of_hash(stored->account.head),
                                   of_integer(stored->last_number)};
    return change_one(
        writing,
        stored->account.sequence == 0
            ? "INSERT INTO ledger_account (player_number, balance_minor, sequence, head,"
              " last_number) VALUES (?1, ?2, ?3, ?4, ?5)"
            : "UPDATE ledger_account SET balance_minor = ?2, sequence = ?3, head = ?4,"
              " last_number = ?5 WHERE player_number = ?1 AND balance_minor = ?6"
              " AND sequence = ?7 AND head = ?8 AND last_number = ?9",
        values, error);
}

static enum status write_declined(struct writing *writing, size_t player, struct error *error)
{
    const struct ledger_account *account = &writing->batch->players[player].account;
    const struct ledger_stored *stored = &writing->batch->loaded.players[player];
    const struct value values[] = {
        of_integer(stored->player_number), of_integer((int64_t)account->declines),
        of_hash(account->declines_head), of_integer((int64_t)stored->account.declines),
        of_hash(stored->account.declines_head)};
    return change_one(writing,
                      "INSERT INTO ledger_declined (player_number, declines, head)"
                      " VALUES (?1, ?2, ?3) ON CONFLICT (player_number)"
                      " DO UPDATE SET declines = excluded.declines, head = excluded.head"
                      " WHERE ledger_declined.declines = ?4 AND ledger_declined.head = ?5",
                      values, error);
}

static enum status write_clearing(struct writing *writing, size_t at, struct error *error)
{
    const struct ledger_clearing *clearing = &writing->batch->clearings[at];
    const struct ledger_stored_clearing *stored = &writing->batch->loaded.clearings[at];
    const struct value values[] = {of_integer(stored->customer_number),
                                   {.text = clearing->currency},
                                   of_integer(clearing->balance_minor),
                                   of_integer(stored->balance_minor)};
    return change_one(writing,
                      stored->found
                          ? "UPDATE ledger_clearing SET balance_minor = ?3"
                            " WHERE customer_number = ?1 AND currency = ?2 AND balance_minor = ?4"
                          : "INSERT INTO ledger_clearing (customer_number, currency,"
                            " balance_minor) VALUES (?1, ?2, ?3)",
                      values, error);
}

static enum status write_last(struct writing *writing, struct error *error)
{
    const struct value values[] = {
        of_integer(writing->first_number + (int64_t)writing->batch->kept_count - 1),
        of_integer(writing->first_number - 1)};
    return change_one(writing, "UPDATE ledger_last SET number = ?1 WHERE one = 1 AND number = ?2",
                      values, error);
}

static enum status write_accounts(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->player_count && status == STATUS_OK; i++) {
        if (batch->players[i].changed)
            status = write_account(writing, i, error);
        if (status == STATUS_OK && batch->players[i].declined)
            status = write_declined(writing, i, error);
    }
    for (size_t i = 0; i < batch->clearing_count && status == STATUS_OK; i++)
        if (batch->clearings[i].changed)
            status = write_clearing(writing, i, error);
    return status == STATUS_OK ? write_last(writing, error) : status;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static enum status write_batch(struct writing *writing, struct error *error)
{
    enum status status = find_players(writing, error);
    if (status == STATUS_OK)
        status = check_unused(writing, error);
    if (status == STATUS_OK)
        status = write_kept(writing, error);
    return status == STATUS_OK ? write_accounts(writing, error) : status;
}

/* The batch is durable: the index and the cache learn of it. */
static void note_batch(struct writing *writing)
{
    const struct ledger_batch *batch = writing->batch;
    struct sqlite_store *store = writing->store;
    struct ledger_cache *cache = sqlite_cache(store);
    for (size_t i = 0; i < batch->player_count; i++) {
        struct ledger_stored account = batch->loaded.players[i];
        if (!batch->players[i].changed && !batch->players[i].declined)
            continue;
        account.account = batch->players[i].account;
        account.last_number = writing->last_entries[i];
        ledger_cache_put_account(cache, &account);
    }
    for (size_t i = 0; i < batch->kept_count; i++)
        ledger_cache_put_transaction(cache, writing->first_number + (int64_t)i,
                                     writing->customers[i], &batch->kept[i]);
    sqlite_ids_add(store, batch, writing->customers);
    store->last_day = writing->last_day;
}

enum status sqlite_ledger_commit(struct platform_store *base, const struct ledger_batch *batch,
                                 bool *unknown, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    *unknown = false;
    CHECK(sqlite3_get_autocommit(store->database) == 0);
    if (batch->kept_count == 0) { /* the loaded rows are durable: there is nothing to sync */
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        return STATUS_OK;
    }
    /* The write lock is held since begin, which has read how far the ledger is: no other handle can
     * take these numbers. */
    struct writing writing = {.store = store,
                              .batch = batch,
                              .first_number = batch->loaded.first_number,
                              .last_day = batch->loaded.last_day};
    enum status status = write_batch(&writing, error);
    if (status != STATUS_OK)
        return sqlite_end(store, status, error);
    status = sqlite_end(store, STATUS_OK, error);
    if (status != STATUS_OK) {
        /* The log may have all of the batch or none. Until this handle was closed and the store
         * recovered, neither the cache nor the index may hear of it. */
        *unknown = true;
        store->failed = true;
        return status;
    }
    /* Committed, but into which files? The next start has to find it, or that it is lost. */
    struct stat facts;
    status = sqlite_files_named(store, &facts, error);
    if (status == STATUS_OK)
        status = sqlite_check_content(store, error);
    if (status == STATUS_OK)
        status = sqlite_mark(store, writing.first_number + (int64_t)batch->kept_count - 1,
                             batch->kept[batch->kept_count - 1].hash, error);
    if (status != STATUS_OK) {
        *unknown = true;
        return status;
    }
    note_batch(&writing);
    return STATUS_OK;
}
