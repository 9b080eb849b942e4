/*
 * The ledger's batches in PostgreSQL. A batch is one transaction and two round trips. The first
 * locks the players and reads the facts (ledger_load.c); the second writes the decisions and
 * commits. Every statement is about the whole batch, with arrays for parameters.
 *
 * Several instances write at once, so:
 *
 *   - A batch locks its players first, in order of their numbers. Later statements read everything
 *     else, in snapshots taken when the locks are held. So the requests of one player are decided
 *     one after the other, and the entries of a batch follow the ones before. (A player and a
 *     sequence are a key as well: if two batches write the same one, whatever they locked, one of
 *     them fails.)
 *   - An id belongs to its customer, and so is shared by players. Its key decides: if another batch
 *     has committed the same id, or its rollback, since begin (or ever, where begin does not look
 *     for it), this batch fails and is decided again. Keys are inserted in order, so that two
 *     batches do not wait for each other.
 *   - The clearing accounts are shared by a customer's players. A batch locks their rows last and
 *     briefly, in order, and adds to them; their limit is the table's. A batch that meets the limit
 *     is decided again with the rows locked from its start, so that it decides on the exact
 *     balance.
 *
 * If the connection is lost during a commit, croupier asks the server for the fate of the
 * transaction's number until the server knows it, for a bounded time.
 *
 * A visible row is not yet safe. Where commits wait for a standby, a commit whose wait was cut
 * short (the server restarted, an administrator ended the session) is visible although the standby
 * does not have it, and a failover loses it. A later commit that waits proves all before it. So an
 * answer from stored rows needs its own commit first, and that commit must have written to the
 * server's log. This is so for batches that keep nothing (the locks on their players are in the
 * log) and for the question about a lost commit.
 */
#include "stores/platform/postgres/ledger.h"
#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform/texts.h"

_Static_assert(LEDGER_BATCH_MAX == 256, "sql/statements/postgresql.sql counts on it");

#define RESOLVE_MS 3000 /* the least time for asking about a lost commit */
#define RESOLVE_PAUSE_MS 50

void postgres_ledger_forget(struct postgres_store *store)
{
    fact_cache_empty(&store->ledger.players);
    fact_cache_empty(&store->ledger.owners);
}

static bool has_state(const struct postgres_store *store, const char *beginning)
{
    return strncmp(store->sqlstate, beginning, strlen(beginning)) == 0;
}

enum status postgres_ledger_fail(struct postgres_store *store, enum status status,
                                 struct error *error)
{
    bool locked = has_state(store, "55P03");
    bool again = store->repeatable || has_state(store, "23") || locked ||
                 has_state(store, "57P0"); /* the server ended the connection */
    postgres_ledger_forget(store);         /* a batch that begins again reads everything */
    status = postgres_end(store, status, error);
    /* A batch does not begin again where a commit that waits for a standby has the lock. */
    return again && !store->unknown && !(locked && store->doubtful) ? STATUS_CONFLICT : status;
}

/* ---- rows to be written ---------------------------------------------------------------------- */

/* A row of ledger_transaction: a transaction, or the key of an id that its rollback is the first to
 * name. */
struct kept_row {
    const struct ledger_transaction *kept;
    size_t at;                           /* in the batch: the order of decision */
    int64_t player_number, owner_number; /* the owner of the id */
    const char *id;
    bool is_key;
    bool late;
};

struct writing {
    struct kept_row rows[2 * LEDGER_BATCH_MAX];
    size_t row_count;
    bool only_entries; /* in rows */
    /* Columns in the order of their statements, below. */
    struct row_arrays kept, rollbacks, declines, declined, accounts, new_accounts;
    struct row_arrays clearings, new_clearings;
};

static void free_writing(struct writing *writing)
{
    arrays_free(&writing->kept);
    arrays_free(&writing->rollbacks);
    arrays_free(&writing->declines);
    arrays_free(&writing->declined);
    arrays_free(&writing->accounts);
    arrays_free(&writing->new_accounts);
    arrays_free(&writing->clearings);
    arrays_free(&writing->new_clearings);
    memory_free(writing);
}

static int compare_ids(const void *a, const void *b)
{
    const struct kept_row *left = a;
    const struct kept_row *right = b;
    if (left->owner_number != right->owner_number)
        return left->owner_number < right->owner_number ? -1 : 1;
    return strcmp(left->id, right->id);
}

static int compare_rows(const void *a, const void *b)
{
    int order = compare_ids(a, b);
    return order != 0
               ? order
               : (int)((const struct kept_row *)a)->late - (int)((const struct kept_row *)b)->late;
}

/* A provider was met, by its id, before anything was decided. */
static int64_t number_of_owner(const struct postgres_store *store, const struct ledger_batch *batch,
                               size_t player, const struct ledger_transaction *kept)
{
    if (kept->provider_id[0] == '\0')
        return batch->loaded.clearings[batch->players[player].clearing].customer_number;
    const struct cached_owner *provider = fact_cache_find(&store->ledger.owners, kept->provider_id);
    CHECK(provider != NULL);
    return provider->number;
}

static void list_transactions(const struct postgres_store *store, const struct ledger_batch *batch,
                              struct writing *writing)
{
    for (size_t i = 0; i < batch->kept_count; i++) {
        const size_t player = ledger_player_of_kept(batch, i);
        CHECK(player < batch->player_count && batch->players[player].found);
        writing->rows[writing->row_count++] = (struct kept_row){
            .kept = &batch->kept[i],
            .at = i,
            .player_number = batch->loaded.players[player].player_number,
            .owner_number = number_of_owner(store, batch, player, &batch->kept[i]),
            .id = batch->kept[i].transaction_id,
        };
    }
    qsort(writing->rows, writing->row_count, sizeof writing->rows[0], compare_ids);
}

/* A voided id that is not used so far needs its own row, to hold its key. The database knows
 * whether it was used before this batch. A transaction later in this batch under such an id is
 * late. */
static void list_keys(struct writing *writing)
{
    size_t transactions = writing->row_count;
    for (size_t i = 0; i < transactions; i++) {
        const struct kept_row *undo = &writing->rows[i];
        if (undo->kept->operation != LEDGER_ROLLBACK || undo->kept->outcome != LEDGER_VOIDED)
            continue;
        struct kept_row key = *undo;
        key.is_key = true;
        key.id = undo->kept->reference;
        struct kept_row *user = bsearch(&key, writing->rows, transactions, sizeof key, compare_ids);
        if (user != NULL && user->at < undo->at)
            continue;
        if (user != NULL)
            user->late = true;
        writing->rows[writing->row_count++] = key;
    }
    qsort(writing->rows, writing->row_count, sizeof writing->rows[0], compare_rows);
}

/* The number of the debit that a credit settles: of this batch, or of one that was loaded. 0: it is
 * not known, and the index of references leads from the debit to the credit. */
static int64_t debit_number(const struct ledger_batch *batch, const struct writing *writing,
                            const struct kept_row *credit)
{
    const struct ledger_transaction *kept = credit->kept;
    if (credit->is_key || !ledger_settles(kept))
        return 0;
    const struct kept_row asked = {.owner_number = credit->owner_number, .id = kept->reference};
    const struct kept_row *debit =
        bsearch(&asked, writing->rows, writing->row_count, sizeof asked, compare_ids);
    if (debit != NULL)
        return batch->loaded.first_number + (int64_t)debit->at;
    const size_t hint = batch->kept_of[credit->at].reference;
    const struct ledger_fact *fact = &batch->facts[hint];
    return hint < batch->fact_count && strcmp(fact->transaction_id, kept->reference) == 0 &&
                   strcmp(fact->owner_id, ledger_owner(kept)) == 0
               ? fact->id.number
               : 0;
}

static void add_kept(struct row_arrays *rows, const struct kept_row *row, int64_t number,
                     int64_t settles)
{
    const struct ledger_transaction *kept = row->kept;
    const bool whole = !row->is_key;
    const bool is_entry = whole && ledger_is_entry(kept);
    ARRAYS_ADD(
        rows, SQL_INTEGER(number), SQL_INTEGER(row->owner_number), SQL_INTEGER(row->player_number),
        SQL_STRING(row->id), sql_given(row->late, SQL_INTEGER(1)),
        sql_given(whole, SQL_STRING(ledger_operation_name(kept->operation))),
        sql_given(whole, SQL_STRING(ledger_outcome_name(kept->outcome))),
        sql_given(whole, sql_optional(kept->reference)),
        sql_given(whole, sql_optional(kept->game_id)),
        sql_given(whole, sql_optional(kept->round_id)), SQL_INTEGER(whole ? kept->amount_minor : 0),
        SQL_INTEGER(kept->created_ms), sql_given(is_entry, SQL_INTEGER(kept->sequence)),
        sql_given(is_entry, SQL_INTEGER(kept->movement_minor)),
        sql_given(is_entry, SQL_INTEGER(kept->balance_minor)),
        sql_given(is_entry, SQL_HASH(kept->hash)), sql_given(whole, sql_optional(kept->launch_id)),
        sql_given(whole && kept->kind != LEDGER_WIN,
                  SQL_STRING(enum_name(&ledger_kinds, kept->kind))),
        sql_given(whole && kept->round_ended, SQL_INTEGER(1)),
        sql_given(settles > 0, SQL_INTEGER(settles)));
}

static void add_rows(const struct ledger_batch *batch, struct writing *writing)
{
    writing->only_entries = true;
    for (size_t i = 0; i < writing->row_count; i++) {
        const struct kept_row *row = &writing->rows[i];
        const int64_t number = batch->loaded.first_number + (int64_t)row->at;
        add_kept(&writing->kept, row, number + (row->is_key ? LEDGER_BATCH_MAX : 0),
                 debit_number(batch, writing, row));
        writing->only_entries &= !row->is_key && ledger_is_entry(row->kept);
        if (row->is_key)
            continue;
        if (!ledger_is_entry(row->kept)) {
            ARRAYS_ADD(&writing->declines, SQL_INTEGER(row->player_number),
                       SQL_INTEGER(row->kept->decline), SQL_INTEGER(number),
                       SQL_HASH(row->kept->hash));
        } else if (row->kept->operation == LEDGER_ROLLBACK) {
            ARRAYS_ADD(&writing->rollbacks, SQL_INTEGER(row->owner_number),
                       SQL_STRING(row->kept->reference), SQL_INTEGER(row->player_number),
                       SQL_INTEGER(number));
        }
    }
}

static void add_accounts(const struct ledger_batch *batch, struct writing *writing)
{
    for (size_t i = 0; i < batch->player_count; i++) {
        const struct ledger_account *account = &batch->players[i].account;
        const int64_t number = batch->loaded.players[i].player_number;
        if (batch->players[i].changed) {
            const bool stored = batch->loaded.players[i].account.sequence > 0;
            ARRAYS_ADD(stored ? &writing->accounts : &writing->new_accounts, SQL_INTEGER(number),
                       SQL_INTEGER(account->balance_minor), SQL_INTEGER(account->sequence),
                       SQL_HASH(account->head));
        }
        if (batch->players[i].declined)
            ARRAYS_ADD(&writing->declined, SQL_INTEGER(number), SQL_INTEGER(account->declines),
                       SQL_HASH(account->declines_head));
    }
}

struct clearing_sum {
    int64_t customer_number;
    const char *currency;
    int64_t movement_minor; /* the batch's sum for it */
    bool stored;
};

static int compare_clearings(const void *a, const void *b)
{
    const struct clearing_sum *left = a;
    const struct clearing_sum *right = b;
    if (left->customer_number != right->customer_number)
        return left->customer_number < right->customer_number ? -1 : 1;
    return strcmp(left->currency, right->currency);
}

/* Sorts them by their key, because all batches lock them in that order. */
static void add_clearings(const struct ledger_batch *batch, struct writing *writing)
{
    struct clearing_sum sums[LEDGER_BATCH_MAX];
    CHECK(batch->clearing_count <= LEDGER_BATCH_MAX);
    for (size_t i = 0; i < batch->clearing_count; i++)
        sums[i] = (struct clearing_sum){
            batch->loaded.clearings[i].customer_number, batch->clearings[i].currency,
            batch->clearings[i].balance_minor - batch->loaded.clearings[i].balance_minor,
            batch->loaded.clearings[i].found};
    qsort(sums, batch->clearing_count, sizeof sums[0], compare_clearings);
    for (size_t i = 0; i < batch->clearing_count; i++) {
        const struct clearing_sum *sum = &sums[i];
        if (sum->movement_minor == 0)
            continue;
        ARRAYS_ADD(&writing->clearings, SQL_INTEGER(sum->customer_number),
                   SQL_STRING(sum->currency), SQL_INTEGER(sum->movement_minor));
        if (!sum->stored)
            ARRAYS_ADD(&writing->new_clearings, SQL_INTEGER(sum->customer_number),
                       SQL_STRING(sum->currency));
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One flight, whose last query is the commit: after one that fails, the server skips it. */
static enum status write_all(struct postgres_store *store, struct writing *writing,
                             struct error *error)
{
    const struct sql_texts *texts = &postgres_texts;
    const struct {
        const char *sql;
        struct row_arrays *rows;
        int columns;
        size_t least; /* rows; with fewer it is left out */
    } steps[] = {
        {texts->insert_declines, &writing->declines, 4, 1}, /* see the triggers */
        {writing->only_entries ? texts->insert_entries : texts->insert_kept, &writing->kept, 20, 1},
        {texts->insert_rollbacks, &writing->rollbacks, 4, 1},
        {texts->write_declined, &writing->declined, 3, 1},
        {texts->update_accounts, &writing->accounts, 4, 1},
        {texts->insert_accounts, &writing->new_accounts, 4, 1},
        {texts->insert_clearings, &writing->new_clearings, 2, 1},
        {texts->lock_sums, &writing->clearings, 3, 2},
        {texts->add_to_clearings, &writing->clearings, 3, 1},
    };
    struct sql_query queries[sizeof steps / sizeof steps[0] + 1];
    size_t count = 0;
    bool limited = false;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (arrays_count(steps[i].rows) >= steps[i].least)
            queries[count++] = (struct sql_query){
                .sql = steps[i].sql, .parameters = arrays_bind(steps[i].rows, steps[i].columns)};
    queries[count++] = (struct sql_query){.sql = postgres_commit};
    enum status status = postgres_run(store, queries, count, error);
    for (size_t i = 0; i < count; i++)
        limited = limited || (queries[i].failed && queries[i].sql == texts->add_to_clearings);
    store->ledger.lock_clearings = limited && has_state(store, "23514");
    return status;
}

/* ---- the fate of a lost commit --------------------------------------------------------------- */

enum outcome { OUTCOME_OPEN, OUTCOME_COMMITTED, OUTCOME_ABORTED };

static enum outcome ask(struct postgres_store *store, const struct ledger_batch *batch)
{
    const struct ledger_transaction *first = &batch->kept[0];
    struct sql_parameters transaction = SQL_PARAMETERS(SQL_INTEGER(batch->loaded.transaction));
    struct sql_parameters row = {0};
    int64_t running = 0;
    struct sql_query queries[] = {{.sql = postgres_begin},
                                  {.sql = postgres_texts.is_running,
                                   .parameters = &transaction,
                                   .row = sql_take_integer,
                                   .context = &running},
                                  {.sql = postgres_texts.is_kept, .parameters = &row},
                                  {.sql = postgres_commit}};
    SQL_ADD(&row, SQL_INTEGER(batch->loaded.first_number), SQL_STRING(first->transaction_id),
            SQL_INTEGER(first->created_ms), SQL_BYTES(first->hash, sizeof first->hash));
    row.at[3].null = !ledger_is_entry(first);
    enum status status = postgres_ready(store, NULL);
    if (status == STATUS_OK && store->doubtful)
        status = postgres_may_commit(store, NULL);
    if (status == STATUS_OK)
        status = postgres_end(store, postgres_run(store, queries, 4, NULL), NULL);
    if (status == STATUS_OK && queries[2].rows > 0)
        return OUTCOME_COMMITTED;
    return status != STATUS_OK || running == 1 ? OUTCOME_OPEN : OUTCOME_ABORTED;
}

/* STATUS_OK: it was committed. STATUS_CONFLICT: surely not. Otherwise returns `status`, and the
 * outcome is not known. */
static enum status resolve(struct postgres_store *store, const struct ledger_batch *batch,
                           enum status status)
{
    const uint64_t patience_ms = store->timeout_ms > RESOLVE_MS ? store->timeout_ms : RESOLVE_MS;
    const uint64_t until_ms = clock_monotonic_ms() + patience_ms;
    enum outcome outcome = ask(store, batch);
    while (outcome == OUTCOME_OPEN && clock_monotonic_ms() < until_ms) {
        clock_pause_ns(RESOLVE_PAUSE_MS * 1000000U);
        outcome = ask(store, batch);
    }
    log_event(store->log, LOG_WARNING, "a commit of the ledger was interrupted",
              LOG_STRING("store", store->location),
              LOG_STRING("outcome", outcome == OUTCOME_COMMITTED ? "committed"
                                    : outcome == OUTCOME_ABORTED ? "not committed"
                                                                 : "unknown"));
    if (outcome == OUTCOME_COMMITTED)
        return STATUS_OK;
    return outcome == OUTCOME_ABORTED ? STATUS_CONFLICT : status;
}

enum status postgres_ledger_commit(struct platform_store *base, const struct ledger_batch *batch,
                                   bool *unknown, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    *unknown = false;
    enum status status = postgres_resume(store, error);
    if (status != STATUS_OK)
        return STATUS_CONFLICT;   /* the connection was lost since begin */
    if (batch->kept_count == 0) { /* its answers need safe rows: see above */
        status = postgres_end(store, STATUS_OK, error);
        *unknown = status != STATUS_OK;
        return status;
    }
    struct writing *writing = memory_alloc_zeroed(1, sizeof *writing);
    list_transactions(store, batch, writing);
    list_keys(writing);
    add_rows(batch, writing);
    add_accounts(batch, writing);
    add_clearings(batch, writing);
    status = write_all(store, writing, error);
    free_writing(writing);
    if (status != STATUS_OK || store->warned)
        status = postgres_ledger_fail(store, status, error);
    bool interrupted = status != STATUS_OK && store->unknown;
    /* With a connection there is no doubt that it was committed, but that a standby has it. */
    if (interrupted && store->connection == NULL)
        status = resolve(store, batch, status);
    *unknown = interrupted && status != STATUS_OK && status != STATUS_CONFLICT;
    return status;
}
