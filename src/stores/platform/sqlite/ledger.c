/*
 * Writes a batch of the ledger into SQLite, in the transaction in which sqlite_ledger_begin loaded
 * it.
 *
 * The accounts of a batch may come from the cache. So each account is updated only where the stored
 * row equals the one that the batch was decided from, to the last byte. If no row is updated, this
 * program did not write the stored account, and the batch is rolled back.
 */

#include "base/clock.h"
#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/texts.h"

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
    return error_invalid(error, "%s: %s", writing->store->path, why);
}

/* Runs a statement that has to change one row, with as many of the values as it has parameters. If
 * it changes none, the stored row is not the one that the batch was decided from. */
static enum status change_one(struct writing *writing, const char *sql,
                              const struct column_value *values, struct error *error)
{
    struct sqlite_store *store = writing->store;
    sqlite3_stmt *statement;
    enum status status = sqlite_bind(store, sql, values, &statement, error);
    if (status == STATUS_OK)
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

#define ROWS_MANY 32 /* in one statement: texts.h */
#define ROWS_SOME 8
#define TRANSACTION_ROW_SIZE 21 /* values */

/* `at` is the row's first parameter. */
static enum status bind_transaction(struct writing *writing, sqlite3_stmt *statement, int at,
                                    size_t kept_at, struct error *error)
{
    const struct ledger_transaction *kept = &writing->batch->kept[kept_at];
    const struct ledger_stored *account =
        &writing->batch->loaded.players[writing->players[kept_at]];
    /* The player's entry before this one, which may be of this batch: so rows go in order. */
    int64_t *last = &writing->last_entries[writing->players[kept_at]];
    const int64_t number = writing->first_number + (int64_t)kept_at;
    const bool is_entry = ledger_is_entry(kept);
    int64_t debit = 0;
    enum status status = STATUS_OK;
    if (ledger_settles(kept))
        status = debit_number(writing, kept_at, &debit, error);
    if (status != STATUS_OK)
        return status;
    const struct column_value values[TRANSACTION_ROW_SIZE] = {
        SQL_INTEGER(number),
        SQL_INTEGER(account->customer_number),
        SQL_INTEGER(account->player_number),
        SQL_INTEGER(kept->amount_minor),
        SQL_INTEGER(kept->created_ms),
        SQL_STRING(kept->transaction_id),
        SQL_STRING(ledger_operation_name(kept->operation)),
        SQL_STRING(ledger_outcome_name(kept->outcome)),
        sql_optional(kept->reference),
        sql_optional(kept->game_id),
        sql_optional(kept->round_id),
        sql_given(is_entry, SQL_INTEGER(kept->sequence)),
        sql_given(is_entry, SQL_INTEGER(kept->movement_minor)),
        sql_given(is_entry, SQL_INTEGER(kept->balance_minor)),
        sql_given(is_entry, SQL_HASH(kept->hash)),
        sql_given(debit != 0, SQL_INTEGER(debit)),
        SQL_INTEGER(is_entry ? *last : 0),
        sql_optional(kept->provider_id),
        sql_optional(kept->launch_id),
        sql_given(kept->kind != LEDGER_WIN, SQL_STRING(enum_name(&ledger_kinds, kept->kind))),
        sql_given(kept->round_ended, SQL_INTEGER(1))};
    for (int i = 0; i < TRANSACTION_ROW_SIZE; i++)
        bind_value(statement, at + i, &values[i]);
    if (is_entry)
        *last = number;
    return STATUS_OK;
}

/* As many of the rows from `first` on as go with one statement; their count. */
static enum status insert_transactions(struct writing *writing, size_t first, size_t *count,
                                       struct error *error)
{
    const struct sql_texts *texts = &sqlite_texts;
    const size_t left = writing->batch->kept_count - first;
    const bool many = left >= ROWS_MANY, some = left >= ROWS_SOME;
    sqlite3_stmt *statement;
    *count = many ? ROWS_MANY : some ? ROWS_SOME : 1;
    enum status status = sqlite_statement(writing->store,
                                          many   ? texts->insert_many_rows
                                          : some ? texts->insert_some_rows
                                                 : texts->insert_row,
                                          &statement, error);
    for (size_t i = 0; i < *count && status == STATUS_OK; i++)
        status = bind_transaction(writing, statement, 1 + TRANSACTION_ROW_SIZE * (int)i, first + i,
                                  error);
    return status == STATUS_OK ? sqlite_run(writing->store, statement, error) : status;
}

static enum status write_decline(struct writing *writing, size_t at, struct error *error)
{
    const struct ledger_transaction *decline = &writing->batch->kept[at];
    const struct ledger_stored *player = &writing->batch->loaded.players[writing->players[at]];
    const struct column_value values[] = {
        SQL_INTEGER(player->player_number), SQL_INTEGER(decline->decline),
        SQL_INTEGER(writing->first_number + (int64_t)at), SQL_HASH(decline->hash)};
    return change_one(writing, sqlite_texts.insert_decline, values, error);
}

/* A row where the day is another than that of the transaction before. */
static enum status write_day(struct writing *writing, size_t at, struct error *error)
{
    int64_t day = writing->batch->kept[at].created_ms / CLOCK_DAY_MS;
    const struct column_value values[] = {SQL_INTEGER(writing->first_number + (int64_t)at),
                                          SQL_INTEGER(day)};
    if (day == writing->last_day)
        return STATUS_OK;
    writing->last_day = day;
    return change_one(writing, sqlite_texts.insert_day, values, error);
}

static enum status write_kept(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    enum status status = STATUS_OK;
    for (size_t i = 0, rows = 0; i < batch->kept_count && status == STATUS_OK; i += rows)
        status = insert_transactions(writing, i, &rows, error);
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
    const struct column_value values[] = {SQL_INTEGER(stored->player_number),
                                          SQL_INTEGER(account->balance_minor),
                                          SQL_INTEGER(account->sequence),
                                          SQL_HASH(account->head),
                                          SQL_INTEGER(writing->last_entries[player]),
                                          SQL_INTEGER(stored->account.balance_minor),
                                          SQL_INTEGER(stored->account.sequence),
                                          SQL_HASH(stored->account.head),
                                          SQL_INTEGER(stored->last_number)};
    const struct sql_texts *texts = &sqlite_texts;
    return change_one(writing,
                      stored->account.sequence == 0 ? texts->insert_account : texts->update_account,
                      values, error);
}

static enum status write_declined(struct writing *writing, size_t player, struct error *error)
{
    const struct ledger_account *account = &writing->batch->players[player].account;
    const struct ledger_stored *stored = &writing->batch->loaded.players[player];
    const struct column_value values[] = {
        SQL_INTEGER(stored->player_number), SQL_INTEGER(account->declines),
        SQL_HASH(account->declines_head), SQL_INTEGER(stored->account.declines),
        SQL_HASH(stored->account.declines_head)};
    return change_one(writing, sqlite_texts.put_declined, values, error);
}

static enum status write_clearing(struct writing *writing, size_t at, struct error *error)
{
    const struct ledger_clearing *clearing = &writing->batch->clearings[at];
    const struct ledger_stored_clearing *stored = &writing->batch->loaded.clearings[at];
    const struct column_value values[] = {
        SQL_INTEGER(stored->customer_number), SQL_STRING(clearing->currency),
        SQL_INTEGER(clearing->balance_minor), SQL_INTEGER(stored->balance_minor)};
    const struct sql_texts *texts = &sqlite_texts;
    return change_one(writing, stored->found ? texts->update_clearing : texts->insert_clearing,
                      values, error);
}

static enum status write_last(struct writing *writing, struct error *error)
{
    const struct column_value values[] = {
        SQL_INTEGER(writing->first_number + (int64_t)writing->batch->kept_count - 1),
        SQL_INTEGER(writing->first_number - 1)};
    return change_one(writing, sqlite_texts.count_on, values, error);
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
