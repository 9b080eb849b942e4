/*
 * Ids of transactions. The index leads from a key, which is a digest of customer and id, to the
 * numbers of the rows that have to do with that id: the transaction that used it, the ROLLBACK that
 * rolled it back, and under a key of their own the CREDITs that settle a DEBIT. Two ids may have
 * the same key; it is the row that tells them apart.
 *
 * An id that is there and not found would be applied again. So the index proves what it holds
 * (id_index.h), a row is believed when it hashes to what is stored (rows.h), and from the rows that
 * the index is made of none may be missing. How far the rows go says ledger_last, and the end of
 * the table has to say the same: one damaged page may hide the newest rows, but not both.
 */
#include "stores/platform/sqlite/ids.h"

#include "base/clock.h"
#include "base/digest.h"
#include "stores/platform/sqlite/id_index.h"

#define FOUND_AT_ONCE 16 /* numbers of one key */

/* ---- keys ------------------------------------------------------------------------------------ */

/* Of the customer's number, lowest byte first, and a text of at most 1 + TRANSACTION_ID_SIZE. */
static uint64_t key_of(int64_t customer_number, const char *prefix, struct text id)
{
    uint8_t bytes[sizeof customer_number + 1 + TRANSACTION_ID_SIZE];
    uint8_t digest[DIGEST_SIZE];
    uint64_t key = 0;
    size_t size = sizeof customer_number;
    CHECK(id.size <= TRANSACTION_ID_SIZE);
    for (size_t i = 0; i < sizeof customer_number; i++)
        bytes[i] = (uint8_t)((uint64_t)customer_number >> (8 * i));
    if (prefix[0] != '\0')
        bytes[size++] = (uint8_t)prefix[0];
    memcpy(bytes + size, id.at, id.size);
    digest_sha256(bytes, size + id.size, digest);
    for (size_t i = 0; i < sizeof key; i++)
        key = key << 8 | digest[i];
    return key & IDS_KEY_MASK;
}

uint64_t sqlite_id_key(int64_t customer_number, struct text id)
{
    return key_of(customer_number, "", id);
}

uint64_t sqlite_settling_key(int64_t customer_number, struct text id)
{
    return key_of(customer_number, "\n", id); /* which no id begins with */
}

static bool settles(const struct ledger_transaction *transaction)
{
    return transaction->operation == LEDGER_CREDIT && transaction->outcome == LEDGER_APPLIED &&
           transaction->reference[0] != '\0';
}

static bool rolls_back(const struct ledger_transaction *transaction)
{
    return transaction->operation == LEDGER_ROLLBACK && ledger_is_entry(transaction);
}

size_t sqlite_row_keys(int64_t customer_number, const struct ledger_transaction *transaction,
                       uint64_t keys[ROW_KEYS_MAX])
{
    size_t count = 0;
    keys[count++] = sqlite_id_key(customer_number, text_of(transaction->transaction_id));
    if (rolls_back(transaction))
        keys[count++] = sqlite_id_key(customer_number, text_of(transaction->reference));
    if (settles(transaction))
        keys[count++] = sqlite_settling_key(customer_number, text_of(transaction->reference));
    return count;
}

/* ---- the index ------------------------------------------------------------------------------- */

static bool feed_row(void *context, const struct ledger_row *row)
{
    uint64_t keys[ROW_KEYS_MAX];
    size_t count = sqlite_row_keys(row->customer_number, &row->transaction, keys);
    return id_feed_row(context, row->number, keys, count, row->hash);
}

static enum status read_rows(void *context, int64_t first, int64_t last, struct id_feed *feed,
                             struct error *error)
{
    return sqlite_rows_visit(context, first, last, feed_row, feed, error);
}

static enum status prove_row(void *context, int64_t number, uint8_t proof[ID_PROOF_SIZE],
                             struct error *error)
{
    struct ledger_row row;
    enum status status = sqlite_row_load(context, number, &row, error);
    if (status == STATUS_OK)
        memcpy(proof, row.hash, ID_PROOF_SIZE);
    return status;
}
_Static_assert(ID_PROOF_SIZE == LEDGER_HASH_SIZE, "the hash of a row is its proof");

#define TOLD_EVERY_MS 2000

/* Only what takes long is told. */
static void tell_progress(void *context, int64_t done, int64_t all)
{
    struct sqlite_store *store = context;
    uint64_t now_ms = clock_monotonic_ms();
    if (store->told_ms == 0 || now_ms < store->told_ms)
        store->told_ms = now_ms;
    if (now_ms < store->told_ms + TOLD_EVERY_MS)
        return;
    store->told_ms = now_ms;
    log_event(store->log, LOG_INFO, "the ledger's index of ids is being made from its rows",
              LOG_INTEGER("done", done), LOG_INTEGER("rows", all));
}

/* What ledger_last says: the newest number, and which ledger it is. */
static enum status load_last(struct sqlite_store *store, int64_t *number,
                             uint8_t identity[ID_IDENTITY_SIZE], struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store, "SELECT number, ledger FROM ledger_last WHERE one = 1", &statement, error);
    if (status == STATUS_OK)
        status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const void *ledger = found ? sqlite3_column_blob(statement, 1) : NULL;
    *number = found ? sqlite3_column_int64(statement, 0) : -1;
    if (*number < 0 || ledger == NULL || sqlite3_column_bytes(statement, 1) != ID_IDENTITY_SIZE)
        status = platform_damaged(&store->base, "nothing says how far its ledger goes", error);
    else
        memcpy(identity, ledger, ID_IDENTITY_SIZE);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status open_index(struct sqlite_store *store, const struct id_source *source,
                              int64_t last, const uint8_t identity[ID_IDENTITY_SIZE], bool upkeep,
                              struct error *error)
{
    struct id_index_options options = {.database = store->path,
                                       .log = store->log,
                                       .progress = tell_progress,
                                       .progress_context = store};
    memcpy(options.identity, identity, sizeof options.identity);
    store->told_ms = 0;
    enum status status = id_index_open(&store->index, &options, source, last, error);
    if (status == STATUS_OK && upkeep)
        id_index_start(store->index);
    return status;
}

/* Somebody else has written, or this handle has not asked yet. */
static enum status catch_up(struct sqlite_store *store, struct error *error)
{
    ledger_cache_forget_accounts(sqlite_cache(store));
    store->last_day = INT64_MIN;
    return sqlite_number(store,
                         "SELECT coalesce((SELECT day FROM ledger_day"
                         " ORDER BY first_number DESC LIMIT 1), -9223372036854775807)",
                         &store->last_day, error);
}

enum status sqlite_ids_ready(struct sqlite_store *store, bool upkeep, struct error *error)
{
    const struct id_source source = {.read = read_rows, .proof = prove_row, .context = store};
    uint8_t identity[ID_IDENTITY_SIZE] = {0};
    int64_t last = 0;
    int64_t stored = 0;
    enum status status = load_last(store, &last, identity, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "SELECT coalesce(max(number), 0) FROM ledger_transaction",
                               &stored, error);
    if (status == STATUS_OK && stored != last)
        status = platform_damaged(&store->base, "its last transaction is not there", error);
    if (status == STATUS_OK && (store->index == NULL || store->last_number != last))
        status = catch_up(store, error);
    if (status != STATUS_OK)
        return status;
    status = store->index == NULL ? open_index(store, &source, last, identity, upkeep, error)
                                  : id_index_ready(store->index, &source, last, error);
    store->last_number = status == STATUS_OK ? last : -1;
    return status;
}

void sqlite_ids_add(struct sqlite_store *store, const struct ledger_batch *batch,
                    const int64_t *customer_numbers)
{
    struct id_entry entries[ROW_KEYS_MAX * LEDGER_BATCH_MAX];
    size_t count = 0;
    for (size_t i = 0; i < batch->kept_count; i++) {
        uint64_t keys[ROW_KEYS_MAX];
        size_t some = sqlite_row_keys(customer_numbers[i], &batch->kept[i], keys);
        for (size_t key = 0; key < some; key++)
            entries[count++] = (struct id_entry){keys[key], store->last_number + 1 + (int64_t)i};
    }
    store->last_number += (int64_t)batch->kept_count;
    id_index_add(store->index, entries, count, store->last_number,
                 batch->kept[batch->kept_count - 1].hash);
}

void sqlite_ledger_index_facts(struct platform_store *base, struct ledger_index_facts *facts)
{
    const struct sqlite_store *store = sqlite_store_of(base);
    struct id_index_facts index = {0};
    if (store->index != NULL)
        id_index_facts(store->index, &index);
    *facts = (struct ledger_index_facts){.ids = index.ids_in_memory + index.ids_in_runs,
                                         .files = index.runs,
                                         .memory_bytes = index.memory_bytes,
                                         .made_again = index.made_again,
                                         .write_failures = index.write_failures};
}

/* ---- finding --------------------------------------------------------------------------------- */

/* A row that the index leads to. One that it leads to and that is not there is damage. */
static enum status load_found(struct sqlite_store *store, int64_t number, struct ledger_row *row,
                              struct error *error)
{
    const struct cached_transaction *cached = ledger_cache_transaction(sqlite_cache(store), number);
    if (cached != NULL) {
        row->number = number;
        row->customer_number = cached->customer_number;
        row->transaction = cached->transaction;
        return STATUS_OK;
    }
    enum status status = sqlite_row_load(store, number, row, error);
    if (status == STATUS_NOT_FOUND)
        status = platform_damaged(&store->base, "its index of transaction ids", error);
    return status;
}

/* What one row under the id's key says of it. False: it cannot stand there. */
static bool take_found(const struct ledger_row *found, int64_t customer_number, uint64_t key,
                       struct ledger_fact *fact)
{
    const struct ledger_transaction *transaction = &found->transaction;
    bool customers = found->customer_number == customer_number;
    if (customers && strcmp(transaction->customer_id, fact->customer_id) != 0)
        return false;
    if (customers && strcmp(transaction->transaction_id, fact->transaction_id) == 0) {
        if (fact->id.known)
            return false;
        fact->id.known = true;
        fact->id.number = found->number;
        fact->id.transaction = *transaction;
        return true;
    }
    if (customers && rolls_back(transaction) &&
        strcmp(transaction->reference, fact->transaction_id) == 0) {
        if (fact->id.rolled_back)
            return false;
        fact->id.rolled_back = true;
        memcpy(fact->id.rolled_back_player, transaction->player_id,
               sizeof fact->id.rolled_back_player);
        return true;
    }
    /* Another id, of the same key. */
    uint64_t keys[ROW_KEYS_MAX];
    size_t count = sqlite_row_keys(found->customer_number, transaction, keys);
    for (size_t i = 0; i < count; i++)
        if (keys[i] == key)
            return true;
    return false;
}

enum status sqlite_load_id(struct sqlite_store *store, struct ledger_fact *fact,
                           struct error *error)
{
    int64_t numbers[FOUND_AT_ONCE];
    size_t count = FOUND_AT_ONCE;
    int64_t after = 0;
    int64_t customer = 0;
    struct ledger_row found;
    enum status status = sqlite_customer_number(store, fact->customer_id, &customer, error);
    if (status != STATUS_OK || customer == 0)
        return status;
    uint64_t key = sqlite_id_key(customer, text_of(fact->transaction_id));
    while (status == STATUS_OK && count == FOUND_AT_ONCE) {
        count = 0;
        status = id_index_find(store->index, key, after, numbers, FOUND_AT_ONCE, &count, error);
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            status = load_found(store, numbers[i], &found, error);
            if (status == STATUS_OK && !take_found(&found, customer, key, fact))
                status = platform_damaged(&store->base, "its index of transaction ids", error);
            after = numbers[i];
        }
    }
    return status;
}

/* ---- standing credits ------------------------------------------------------------------------ */

/* Whether a row is a CREDIT that settles the debit and was not rolled back. */
static enum status stands(struct sqlite_store *store, const struct ledger_fact *debit,
                          const struct ledger_row *row, bool *standing, struct error *error)
{
    const struct ledger_transaction *credit = &row->transaction;
    struct ledger_fact fact = {0};
    *standing = false;
    if (!settles(credit) || strcmp(credit->reference, debit->transaction_id) != 0 ||
        strcmp(credit->customer_id, debit->customer_id) != 0)
        return STATUS_OK; /* another, of the same key */
    memcpy(fact.customer_id, credit->customer_id, sizeof fact.customer_id);
    memcpy(fact.transaction_id, credit->transaction_id, sizeof fact.transaction_id);
    enum status status = sqlite_load_id(store, &fact, error);
    *standing = !fact.id.rolled_back;
    return status;
}

/* One more than a batch could take away is as good as any number. */
static enum status load_standing_credits(struct sqlite_store *store, struct ledger_fact *fact,
                                         struct error *error)
{
    int64_t numbers[FOUND_AT_ONCE];
    size_t count = FOUND_AT_ONCE;
    int64_t after = 0;
    int64_t customer = 0;
    struct ledger_row found;
    enum status status = sqlite_customer_number(store, fact->customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    uint64_t key = sqlite_settling_key(customer, text_of(fact->transaction_id));
    while (status == STATUS_OK && count == FOUND_AT_ONCE &&
           fact->id.standing_credits <= LEDGER_BATCH_MAX) {
        count = 0;
        status = id_index_find(store->index, key, after, numbers, FOUND_AT_ONCE, &count, error);
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            bool standing = false;
            status = load_found(store, numbers[i], &found, error);
            if (status == STATUS_OK)
                status = stands(store, fact, &found, &standing, error);
            fact->id.standing_credits += standing;
            after = numbers[i];
        }
    }
    return status;
}

enum status sqlite_load_fact(struct sqlite_store *store, struct ledger_fact *fact,
                             struct error *error)
{
    fact->id = (struct ledger_id){0};
    enum status status = sqlite_load_id(store, fact, error);
    if (status == STATUS_OK && fact->counts_credits && fact->id.known &&
        fact->id.transaction.operation == LEDGER_DEBIT &&
        fact->id.transaction.outcome == LEDGER_APPLIED)
        status = load_standing_credits(store, fact, error);
    return status;
}

/* ---- in SQL ---------------------------------------------------------------------------------- */

/* ledger_id_key(customer_number, id), ledger_settling_key(customer_number, id): the function's own
 * is which of the two. NULL of what is no id: then somebody tampered. */
static void key_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint64_t (*const *key)(int64_t, struct text) = sqlite3_user_data(context);
    CHECK(count == 2);
    struct text id = {(const char *)sqlite3_value_text(values[1]), 0};
    id.size = id.at == NULL ? 0 : (size_t)sqlite3_value_bytes(values[1]);
    if (id.at == NULL || id.size > TRANSACTION_ID_SIZE)
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, (int64_t)(*key)(sqlite3_value_int64(values[0]), id));
}

/* ledger_ids_take_over(last_number): schema 9 filled an index of ids with it. Schema 10, which
 * comes in the same transaction (engine.c), has none, so it does nothing. */
static void take_over_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    CHECK(count == 1);
    (void)values;
    sqlite3_result_null(context);
}

void sqlite_ids_register(struct sqlite_store *store)
{
    static uint64_t (*const id_key)(int64_t, struct text) = sqlite_id_key;
    static uint64_t (*const settling_key)(int64_t, struct text) = sqlite_settling_key;
    const int pure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    CHECK(sqlite3_create_function(store->database, "ledger_id_key", 2, pure,
                                  (void *)(uintptr_t)&id_key, key_function, NULL,
                                  NULL) == SQLITE_OK);
    CHECK(sqlite3_create_function(store->database, "ledger_settling_key", 2, pure,
                                  (void *)(uintptr_t)&settling_key, key_function, NULL,
                                  NULL) == SQLITE_OK);
    CHECK(sqlite3_create_function(store->database, "ledger_ids_take_over", 1,
                                  SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, take_over_function, NULL,
                                  NULL) == SQLITE_OK);
}
