/*
 * What a batch of the ledger writes into SQLite. It was decided from what sqlite_ledger_begin
 * loaded, in the same transaction.
 */
#include <string.h>

#include "base/hash.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids.h"

static void bind_if_given(sqlite3_stmt *statement, int at, const char *string)
{
    if (string[0] != '\0') /* else NULL */
        bind_string(statement, at, string);
}

#define INDEX_SIZE 2048 /* more than twice the facts; a power of two */

/* What is being written, with the numbers that its rows refer to. */
struct writing {
    struct sqlite_store *store;
    const struct ledger_batch *batch;
    int64_t first_number; /* of the first row of batch->kept */
    uint64_t seed;        /* of the index: clients choose ids */
    uint16_t
        index[INDEX_SIZE]; /* debits by id, one more than their place: in `kept`, then in `facts` */
    struct last_entry {    /* of the players, by number; 0: none */
        int64_t player, number;
    } last_entries[2 * LEDGER_BATCH_MAX];
    uint16_t unused[INDEX_SIZE]; /* facts whose id begin has proved to be unused, likewise by id */
    int64_t customers[LEDGER_BATCH_MAX]; /* of `kept`, by number */
};

/* The slot of an id in one of the two, which is 0 when it is not there. */
static uint16_t *slot_of(struct writing *writing, uint16_t index[INDEX_SIZE],
                         const char *customer_id, const char *id)
{
    const struct ledger_batch *batch = writing->batch;
    for (size_t at = hash_string(hash_string(writing->seed, customer_id), id);; at++) {
        uint16_t *slot = &index[at % INDEX_SIZE];
        if (*slot == 0)
            return slot;
        size_t place = *slot - 1U;
        bool is_kept = place < LEDGER_BATCH_MAX;
        const struct ledger_fact *fact = &batch->facts[is_kept ? 0 : place - LEDGER_BATCH_MAX];
        const struct ledger_transaction *kept = &batch->kept[is_kept ? place : 0];
        if (strcmp(is_kept ? kept->transaction_id : fact->transaction_id, id) == 0 &&
            strcmp(is_kept ? kept->customer_id : fact->customer_id, customer_id) == 0)
            return slot;
    }
}

/* Who commits may have named no facts: then neither index has any. */
static void index_ids(struct writing *writing)
{
    const struct ledger_batch *batch = writing->batch;
    for (size_t i = 0; i < batch->kept_count; i++)
        if (batch->kept[i].operation == LEDGER_DEBIT)
            *slot_of(writing, writing->index, batch->kept[i].customer_id,
                     batch->kept[i].transaction_id) = (uint16_t)(i + 1);
    for (size_t i = 0; i < batch->fact_count; i++) {
        const struct ledger_fact *fact = &batch->facts[i];
        uint16_t *index = fact->id.number != 0 ? writing->index : writing->unused;
        *slot_of(writing, index, fact->customer_id, fact->transaction_id) =
            (uint16_t)(LEDGER_BATCH_MAX + i + 1);
    }
}

/* The number of the debit that a credit refers to. Asks for one that the batch did not name. */
static enum status debit_number(struct writing *writing, const struct ledger_transaction *credit,
                                int64_t *number, struct error *error)
{
    size_t place = *slot_of(writing, writing->index, credit->customer_id, credit->reference);
    struct ledger_fact fact = {0};
    if (place > LEDGER_BATCH_MAX)
        *number = writing->batch->facts[place - 1 - LEDGER_BATCH_MAX].id.number;
    else if (place > 0)
        *number = writing->first_number + (int64_t)place - 1;
    if (place > 0)
        return STATUS_OK;
    memcpy(fact.customer_id, credit->customer_id, sizeof fact.customer_id);
    memcpy(fact.transaction_id, credit->reference, sizeof fact.transaction_id);
    enum status status = sqlite_load_id(writing->store, &fact, error);
    *number = fact.id.number;
    return status;
}

/* The player's last entry, of those written so far. */
static enum status find_last_entry(struct writing *writing, int64_t player,
                                   struct last_entry **last, struct error *error)
{
    size_t room = sizeof writing->last_entries / sizeof writing->last_entries[0];
    size_t at = (size_t)player % room;
    while (writing->last_entries[at].player != 0 && writing->last_entries[at].player != player)
        at = (at + 1) % room;
    *last = &writing->last_entries[at];
    if ((*last)->player == player)
        return STATUS_OK;
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        writing->store, "SELECT last_number FROM ledger_account WHERE player_number = ?1",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    status = sqlite_first(writing->store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    (*last)->player = player;
    (*last)->number = found ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

#define TRANSACTION_INSERT                                                                  \
    "INSERT INTO ledger_transaction (number, customer_number, player_number, amount_minor," \
    " created_ms, transaction_id, operation, outcome, reference, game, round_id, sequence," \
    " movement_minor, balance_minor, hash, settles, previous) VALUES "
#define TRANSACTION_ROW "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define TRANSACTION_ROW_SIZE 17

/* `at` is the row's first parameter. */
static enum status bind_transaction(struct writing *writing, sqlite3_stmt *statement, int at,
                                    const struct ledger_transaction *kept, struct error *error)
{
    struct sqlite_store *store = writing->store;
    int64_t customer = 0;
    int64_t player = 0;
    int64_t debit = 0;
    size_t place = (size_t)(kept - writing->batch->kept);
    int64_t number = writing->first_number + (int64_t)place;
    struct last_entry *last = NULL;
    bool settles = kept->operation == LEDGER_CREDIT && kept->outcome == LEDGER_APPLIED &&
                   kept->reference[0] != '\0';
    enum status status = sqlite_customer_number(store, kept->customer_id, &customer, error);
    if (status == STATUS_OK)
        status = sqlite_player_number(store, kept->player_id, &player, error);
    if (status == STATUS_OK && settles)
        status = debit_number(writing, kept, &debit, error);
    if (status == STATUS_OK && ledger_is_entry(kept))
        status = find_last_entry(writing, player, &last, error);
    if (status != STATUS_OK)
        return status;
    writing->customers[place] = customer;
    bind_integer(statement, at, number);
    bind_integer(statement, at + 1, customer);
    bind_integer(statement, at + 2, player);
    bind_integer(statement, at + 3, kept->amount_minor);
    bind_integer(statement, at + 4, kept->created_ms);
    bind_string(statement, at + 5, kept->transaction_id);
    bind_string(statement, at + 6, ledger_operation_name(kept->operation));
    bind_string(statement, at + 7, ledger_outcome_name(kept->outcome));
    bind_if_given(statement, at + 8, kept->reference);
    bind_if_given(statement, at + 9, kept->game_id);
    bind_if_given(statement, at + 10, kept->round_id);
    if (last != NULL) { /* an entry; else NULL */
        bind_integer(statement, at + 11, (int64_t)kept->sequence);
        bind_integer(statement, at + 12, kept->movement_minor);
        bind_integer(statement, at + 13, kept->balance_minor);
        bind_blob(statement, at + 14, kept->hash, LEDGER_HASH_SIZE);
    }
    if (debit != 0)
        bind_integer(statement, at + 15, debit);
    bind_integer(statement, at + 16, last != NULL ? last->number : 0);
    if (last != NULL)
        last->number = number;
    return STATUS_OK;
}

static enum status insert_transactions(struct writing *writing,
                                       const struct ledger_transaction *kept, size_t count,
                                       struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        writing->store, SQLITE_WRITE_ROWS(count, TRANSACTION_INSERT, TRANSACTION_ROW, ""),
        &statement, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = bind_transaction(writing, statement, 1 + TRANSACTION_ROW_SIZE * (int)i, &kept[i],
                                  error);
    return status == STATUS_OK ? sqlite_run(writing->store, statement, error) : status;
}

#define DECLINE_INSERT \
    "INSERT INTO ledger_decline (player_number, position, transaction_number, hash) VALUES "
#define DECLINE_ROW "(?, ?, ?, ?)"
#define DECLINE_ROW_SIZE 4

static enum status insert_declines(struct writing *writing,
                                   const struct ledger_transaction *const *declines, size_t count,
                                   struct error *error)
{
    sqlite3_stmt *statement;
    enum status status =
        sqlite_statement(writing->store, SQLITE_WRITE_ROWS(count, DECLINE_INSERT, DECLINE_ROW, ""),
                         &statement, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        int64_t player = 0;
        int at = 1 + DECLINE_ROW_SIZE * (int)i;
        status = sqlite_player_number(writing->store, declines[i]->player_id, &player, error);
        if (status != STATUS_OK)
            break;
        bind_integer(statement, at, player);
        bind_integer(statement, at + 1, (int64_t)declines[i]->decline);
        bind_integer(statement, at + 2,
                     writing->first_number + (declines[i] - writing->batch->kept));
        bind_blob(statement, at + 3, declines[i]->hash, LEDGER_HASH_SIZE);
    }
    return status == STATUS_OK ? sqlite_run(writing->store, statement, error) : status;
}

static enum status write_declines(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    const struct ledger_transaction *declines[LEDGER_BATCH_MAX];
    size_t count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->kept_count; i++)
        if (!ledger_is_entry(&batch->kept[i]))
            declines[count++] = &batch->kept[i];
    for (size_t i = 0, rows; i < count && status == STATUS_OK; i += rows) {
        rows = sqlite_rows_next(count - i);
        status = insert_declines(writing, &declines[i], rows, error);
    }
    return status;
}

static enum status put_declined(struct writing *writing, const struct ledger_account *account,
                                struct error *error)
{
    sqlite3_stmt *statement;
    int64_t player = 0;
    enum status status = sqlite_player_number(writing->store, account->player.id, &player, error);
    if (status == STATUS_OK)
        status =
            sqlite_statement(writing->store,
                             "INSERT INTO ledger_declined (player_number, declines, head)"
                             " VALUES (?1, ?2, ?3) ON CONFLICT (player_number)"
                             " DO UPDATE SET declines = excluded.declines, head = excluded.head",
                             &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    bind_integer(statement, 2, (int64_t)account->declines);
    bind_blob(statement, 3, account->declines_head, LEDGER_HASH_SIZE);
    return sqlite_run(writing->store, statement, error);
}

static enum status insert_rollback(struct writing *writing,
                                   const struct ledger_transaction *rollback, struct error *error)
{
    struct sqlite_store *store = writing->store;
    sqlite3_stmt *statement;
    int64_t customer = 0;
    int64_t player = 0;
    enum status status = sqlite_customer_number(store, rollback->customer_id, &customer, error);
    if (status == STATUS_OK)
        status = sqlite_player_number(store, rollback->player_id, &player, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "INSERT INTO ledger_rollback (customer_number, target_id,"
                                  " player_number, transaction_number) VALUES (?1, ?2, ?3, ?4)",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, customer);
    bind_string(statement, 2, rollback->reference);
    bind_integer(statement, 3, player);
    bind_integer(statement, 4, writing->first_number + (rollback - writing->batch->kept));
    return sqlite_run(store, statement, error);
}

#define ACCOUNT_INSERT                                                                        \
    "INSERT INTO ledger_account (player_number, balance_minor, sequence, head, last_number) " \
    "VALUES "
#define ACCOUNT_ROW "(?, ?, ?, ?, ?)"
#define ACCOUNT_ROW_SIZE 5
#define ACCOUNT_UPSERT                                                                   \
    " ON CONFLICT (player_number) DO UPDATE SET balance_minor = excluded.balance_minor," \
    " sequence = excluded.sequence, head = excluded.head, last_number = excluded.last_number"

static enum status put_accounts(struct writing *writing,
                                const struct ledger_account *const *accounts, size_t count,
                                struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        writing->store, SQLITE_WRITE_ROWS(count, ACCOUNT_INSERT, ACCOUNT_ROW, ACCOUNT_UPSERT),
        &statement, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        int64_t player = 0;
        int at = 1 + ACCOUNT_ROW_SIZE * (int)i;
        struct last_entry *last = NULL;
        status = sqlite_player_number(writing->store, accounts[i]->player.id, &player, error);
        if (status == STATUS_OK)
            status = find_last_entry(writing, player, &last, error);
        if (status != STATUS_OK)
            break;
        bind_integer(statement, at, player);
        bind_integer(statement, at + 1, accounts[i]->balance_minor);
        bind_integer(statement, at + 2, (int64_t)accounts[i]->sequence);
        bind_blob(statement, at + 3, accounts[i]->head, LEDGER_HASH_SIZE);
        bind_integer(statement, at + 4, last->number);
    }
    return status == STATUS_OK ? sqlite_run(writing->store, statement, error) : status;
}

static enum status write_accounts(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    const struct ledger_account *changed[LEDGER_BATCH_MAX];
    size_t count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->place_count; i++)
        if (batch->places[i].changed)
            changed[count++] = &batch->places[i].account;
    for (size_t i = 0, rows; i < count && status == STATUS_OK; i += rows) {
        rows = sqlite_rows_next(count - i);
        status = put_accounts(writing, &changed[i], rows, error);
    }
    for (size_t i = 0; i < batch->place_count && status == STATUS_OK; i++)
        if (batch->places[i].declined)
            status = put_declined(writing, &batch->places[i].account, error);
    return status;
}

static enum status write_clearing(struct sqlite_store *store,
                                  const struct ledger_clearing *clearing, struct error *error)
{
    sqlite3_stmt *statement;
    int64_t customer = 0;
    enum status status = sqlite_customer_number(store, clearing->customer_id, &customer, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            "INSERT INTO ledger_clearing (customer_number, currency, balance_minor)"
            " VALUES (?1, ?2, ?3) ON CONFLICT (customer_number, currency)"
            " DO UPDATE SET balance_minor = excluded.balance_minor",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, customer);
    bind_string(statement, 2, clearing->currency);
    bind_integer(statement, 3, clearing->balance_minor);
    return sqlite_run(store, statement, error);
}

/* A customer uses an id once. Begin has proved that of the ids that it was asked for; what it was
 * not asked for is looked up before anything is written, as long as the tables agree. */
static enum status check_unused(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->kept_count && status == STATUS_OK; i++) {
        const struct ledger_transaction *kept = &batch->kept[i];
        struct ledger_fact fact = {0};
        if (*slot_of(writing, writing->unused, kept->customer_id, kept->transaction_id) != 0)
            continue;
        memcpy(fact.customer_id, kept->customer_id, sizeof fact.customer_id);
        memcpy(fact.transaction_id, kept->transaction_id, sizeof fact.transaction_id);
        status = sqlite_load_id(writing->store, &fact, error);
        if (status == STATUS_OK && fact.id.known)
            status = error_set(error, STATUS_INVALID, "%s: a transaction id is used once",
                               writing->store->path);
    }
    return status;
}

/* The same among those of the batch, whose ids are sorted by key. */
static enum status check_batch(const struct writing *writing, const struct sqlite_id *ids,
                               size_t count, struct error *error)
{
    for (size_t i = 1; i < count; i++) {
        if (ids[i].key != ids[i - 1].key)
            continue;
        const struct ledger_transaction *one =
            &writing->batch->kept[ids[i].number - writing->first_number];
        const struct ledger_transaction *other =
            &writing->batch->kept[ids[i - 1].number - writing->first_number];
        if (one != other && strcmp(one->transaction_id, other->transaction_id) == 0 &&
            strcmp(one->customer_id, other->customer_id) == 0)
            return error_set(error, STATUS_INVALID, "%s: a transaction id is used once",
                             writing->store->path);
    }
    return STATUS_OK;
}

/* Of each transaction, and of each id that one has rolled back. */
static enum status write_ids(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    struct sqlite_id ids[IDS_ADDED_MAX];
    size_t count = 0;
    for (size_t i = 0; i < batch->kept_count; i++) {
        const struct ledger_transaction *kept = &batch->kept[i];
        int64_t customer = writing->customers[i];
        int64_t number = writing->first_number + (int64_t)i;
        ids[count++] =
            (struct sqlite_id){sqlite_id_key(customer, text_of(kept->transaction_id)), number};
        if (kept->operation == LEDGER_ROLLBACK && ledger_is_entry(kept))
            ids[count++] =
                (struct sqlite_id){sqlite_id_key(customer, text_of(kept->reference)), number};
    }
    enum status status = sqlite_ids_add(
        writing->store, ids, count, writing->first_number + (int64_t)batch->kept_count - 1, error);
    return status == STATUS_OK ? check_batch(writing, ids, count, error) : status;
}

static enum status write_kept(struct writing *writing, struct error *error)
{
    const struct ledger_batch *batch = writing->batch;
    enum status status = write_declines(writing, error); /* first: see the triggers */
    for (size_t i = 0, rows; i < batch->kept_count && status == STATUS_OK; i += rows) {
        rows = sqlite_rows_next(batch->kept_count - i);
        status = insert_transactions(writing, &batch->kept[i], rows, error);
    }
    for (size_t i = 0; i < batch->kept_count && status == STATUS_OK; i++)
        if (batch->kept[i].operation == LEDGER_ROLLBACK && ledger_is_entry(&batch->kept[i]))
            status = insert_rollback(writing, &batch->kept[i], error);
    return status;
}

/* The numbers go on where the index of ids says that they have come to: the table's own end is what
 * one damaged page may hide. */
static enum status next_number(struct sqlite_store *store, int64_t *number, struct error *error)
{
    int64_t last = 0;
    int64_t stored = 0;
    enum status status = sqlite_ids_last_number(store, &last, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "SELECT coalesce(max(number), 0) FROM ledger_transaction",
                               &stored, error);
    if (status == STATUS_OK && stored != last)
        status = platform_damaged(&store->base, "its last transaction is not there", error);
    *number = last + 1;
    return status;
}

static enum status write_batch(struct sqlite_store *store, const struct ledger_batch *batch,
                               struct error *error)
{
    struct writing writing = {.store = store, .batch = batch, .seed = hash_random_seed()};
    if (batch->kept_count == 0)
        return STATUS_OK;
    enum status status = next_number(store, &writing.first_number, error);
    index_ids(&writing);
    if (status == STATUS_OK)
        status = check_unused(&writing, error);
    if (status == STATUS_OK)
        status = write_kept(&writing, error);
    if (status == STATUS_OK)
        status = write_accounts(&writing, error);
    for (size_t i = 0; i < batch->clearing_count && status == STATUS_OK; i++)
        if (batch->clearings[i].changed)
            status = write_clearing(store, &batch->clearings[i], error);
    return status == STATUS_OK ? write_ids(&writing, error) : status;
}

enum status sqlite_ledger_commit(struct platform_store *base, const struct ledger_batch *batch,
                                 bool *unknown, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    *unknown = false;
    CHECK(sqlite3_get_autocommit(store->database) == 0);
    enum status status = write_batch(store, batch, error);
    if (status != STATUS_OK)
        return sqlite_end(store, status, error);
    if (batch->kept_count == 0) {
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        return STATUS_OK;
    }
    status = sqlite_end(store, STATUS_OK, error);
    if (status != STATUS_OK) {
        *unknown = true;
        store->failed = true;
    }
    return status;
}
