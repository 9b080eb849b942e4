/*
 * Ids of transactions. The index leads from a key, which is a hash of its owner and id, to the
 * numbers of the rows that concern the id: the transaction that used it, the ROLLBACK that rolled
 * it back, and under another key the CREDITs that settle a DEBIT. Two ids may have the same key;
 * the row tells them apart.
 *
 * An id that is stored but not found would be applied a second time. So the index proves its
 * contents (id_index.h), a row counts only if it has the stored hash (rows.h), and none of the rows
 * that the index is made of may be missing. ledger_last holds the number of the newest row, and the
 * end of the table must agree with it: one damaged page may hide the newest rows, but not both.
 */
#include "stores/platform/sqlite/ids.h"

#include "base/hash.h"
#include "stores/platform/texts.h"

#define FOUND_AT_ONCE 16 /* numbers of one key */

/* ---- keys ------------------------------------------------------------------------------------ */

/* Makes the key of the customer's number, or of 0 and the provider, and the id. */
uint64_t sqlite_id_key(const uint8_t identity[ID_IDENTITY_SIZE], int64_t customer_number,
                       const char *provider_id, struct text id, bool settling)
{
    char bytes[sizeof customer_number + PROVIDER_ID_SIZE + 1 + TRANSACTION_ID_SIZE];
    size_t size = sizeof customer_number;
    size_t provider_size = strlen(provider_id);
    int64_t number = provider_size > 0 ? 0 : customer_number;
    CHECK(id.size <= TRANSACTION_ID_SIZE && provider_size < PROVIDER_ID_SIZE);
    memcpy(bytes, &number, size);
    if (provider_size > 0) {
        memcpy(bytes + size, provider_id, provider_size);
        size += provider_size;
        bytes[size++] = '/'; /* no id contains it */
    }
    if (settling)
        bytes[size++] = '\n'; /* no id begins with it */
    memcpy(bytes + size, id.at, id.size);
    return hash_keyed(identity, bytes, size + id.size) & IDS_KEY_MASK;
}
_Static_assert(ID_IDENTITY_SIZE == HASH_KEY_SIZE, "which ledger it is, is the key");

size_t sqlite_row_keys(const uint8_t identity[ID_IDENTITY_SIZE], int64_t customer_number,
                       const struct ledger_transaction *transaction, uint64_t keys[ROW_KEYS_MAX])
{
    const struct text id = text_of(transaction->transaction_id);
    const struct text reference = text_of(transaction->reference);
    const char *provider = transaction->provider_id;
    size_t count = 0;
    keys[count++] = sqlite_id_key(identity, customer_number, provider, id, false);
    if (ledger_rolls_back(transaction))
        keys[count++] = sqlite_id_key(identity, customer_number, provider, reference, false);
    if (ledger_settles(transaction))
        keys[count++] = sqlite_id_key(identity, customer_number, provider, reference, true);
    return count;
}

/* ---- the index ------------------------------------------------------------------------------- */

/* The index reads rows by these. */
struct rows_asked {
    struct sqlite_store *store;
    const char *id;       /* NULL: all; else only those that a look-up of it may need */
    struct id_feed *feed; /* takes them */
};

static bool feed_row(void *context, const struct ledger_row *row)
{
    const struct rows_asked *asked = context;
    uint64_t keys[ROW_KEYS_MAX];
    size_t count =
        sqlite_row_keys(asked->store->ledger, row->customer_number, &row->transaction, keys);
    return id_feed_row(asked->feed, row->number, keys, count, row->hash);
}

static enum status read_rows(void *context, int64_t first, int64_t last, struct id_feed *feed,
                             struct error *error)
{
    struct rows_asked *asked = context;
    asked->feed = feed;
    return sqlite_rows_visit(asked->store, first, last, asked->id, feed_row, asked, error);
}

static enum status read_row_hash(void *context, int64_t number, uint8_t row_hash[ID_ROW_HASH_SIZE],
                                 struct error *error)
{
    const struct rows_asked *asked = context;
    struct ledger_row row;
    enum status status = sqlite_row_load(asked->store, number, &row, error);
    if (status == STATUS_OK)
        memcpy(row_hash, row.hash, ID_ROW_HASH_SIZE);
    return status;
}
_Static_assert(ID_ROW_HASH_SIZE == LEDGER_HASH_SIZE, "the sizes are the same");

static struct id_source source_of(struct rows_asked *asked)
{
    return (struct id_source){.read = read_rows, .row_hash = read_row_hash, .context = asked};
}

/* What ledger_last says: the newest number, and which ledger it is. */
enum status sqlite_ids_last(struct sqlite_store *store, int64_t *number, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_find(store, sqlite_texts.last, NULL, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const void *ledger = found ? sqlite3_column_blob(statement, 1) : NULL;
    *number = found ? sqlite3_column_int64(statement, 0) : -1;
    if (*number < 0 || ledger == NULL || sqlite3_column_bytes(statement, 1) != ID_IDENTITY_SIZE)
        status = platform_damaged(&store->base, "nothing says how far its ledger goes", error);
    else
        memcpy(store->ledger, ledger, ID_IDENTITY_SIZE);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status open_index(struct sqlite_store *store, const struct id_source *source,
                              int64_t last, bool upkeep, bool once, struct error *error)
{
    struct id_index_options options = {.database = store->path, .log = store->log, .once = once};
    memcpy(options.identity, store->ledger, sizeof options.identity);
    enum status status = id_index_open(&store->index, &options, source, last, error);
    if (status == STATUS_OK && upkeep)
        id_index_start(store->index);
    return status;
}

/* Another handle has written, or this handle has not asked yet. */
static enum status catch_up(struct sqlite_store *store, struct error *error)
{
    ledger_cache_forget_accounts(sqlite_cache(store));
    store->last_day = INT64_MIN;
    return sqlite_number(store, sqlite_texts.last_day, &store->last_day, error);
}

/* The newest row, which is there. */
static enum status find_end(struct sqlite_store *store, int64_t *last, struct error *error)
{
    int64_t stored = 0;
    enum status status = sqlite_ids_last(store, last, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "SELECT coalesce(max(number), 0) FROM ledger_transaction",
                               &stored, error);
    if (status == STATUS_OK && stored != *last)
        status = platform_damaged(&store->base, "its last transaction is not there", error);
    return status;
}

enum status sqlite_ids_ready(struct sqlite_store *store, bool upkeep, struct error *error)
{
    struct rows_asked all = {.store = store};
    const struct id_source source = source_of(&all);
    int64_t last = 0;
    enum status status = find_end(store, &last, error);
    if (status == STATUS_OK && (store->index == NULL || store->last_number != last))
        status = catch_up(store, error);
    if (status != STATUS_OK)
        return status;
    status = store->index == NULL ? open_index(store, &source, last, upkeep, false, error)
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
        size_t some = sqlite_row_keys(store->ledger, customer_numbers[i], &batch->kept[i], keys);
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

static enum status damaged_index(const struct sqlite_store *store, struct error *error)
{
    return platform_damaged(&store->base, "its index of transaction ids", error);
}

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
        status = damaged_index(store, error);
    return status;
}

/* Takes a row that the index leads to from `key`. */
typedef enum status row_taker(struct sqlite_store *store, uint64_t key,
                              const struct ledger_row *row, struct ledger_fact *fact,
                              struct error *error);

/* Hands on the rows to which an id leads, or those that settle the DEBIT of the id. There is no id
 * of a customer that is not there. One more standing credit than a batch could take away is as good
 * as any number. */
static enum status find_rows(struct sqlite_store *store, struct ledger_fact *fact, bool settling,
                             row_taker *take, struct error *error)
{
    const bool of_provider = ledger_owner_is_provider(fact->owner_id);
    const char *provider = of_provider ? fact->owner_id : "";
    const struct text id = text_of(fact->transaction_id);
    int64_t numbers[FOUND_AT_ONCE];
    size_t count = FOUND_AT_ONCE;
    int64_t after = 0;
    int64_t customer = -1;
    struct ledger_row found;
    enum status status =
        of_provider ? STATUS_OK : sqlite_customer_number(store, fact->owner_id, &customer, error);
    if (status != STATUS_OK || customer == 0)
        return status;
    uint64_t key = sqlite_id_key(store->ledger, customer, provider, id, settling);
    while (status == STATUS_OK && count == FOUND_AT_ONCE &&
           fact->id.standing_credits <= LEDGER_BATCH_MAX) {
        count = 0;
        status = id_index_find(store->index, key, after, numbers, FOUND_AT_ONCE, &count, error);
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            status = load_found(store, numbers[i], &found, error);
            if (status == STATUS_OK)
                status = take(store, key, &found, fact, error);
            after = numbers[i];
        }
    }
    return status;
}

/* Adds the facts of one row under the id's key. */
static enum status take_found(struct sqlite_store *store, uint64_t key,
                              const struct ledger_row *found, struct ledger_fact *fact,
                              struct error *error)
{
    const struct ledger_transaction *transaction = &found->transaction;
    bool owners = strcmp(ledger_owner(transaction), fact->owner_id) == 0;
    if (owners && strcmp(transaction->transaction_id, fact->transaction_id) == 0) {
        if (fact->id.known)
            return damaged_index(store, error);
        fact->id.known = true;
        fact->id.number = found->number;
        fact->id.transaction = *transaction;
        return STATUS_OK;
    }
    if (owners && ledger_rolls_back(transaction) &&
        strcmp(transaction->reference, fact->transaction_id) == 0) {
        if (fact->id.rolled_back)
            return damaged_index(store, error);
        fact->id.rolled_back = true;
        memcpy(fact->id.rolled_back_player, transaction->player_id,
               sizeof fact->id.rolled_back_player);
        memcpy(fact->id.rolled_back_by, transaction->transaction_id,
               sizeof fact->id.rolled_back_by);
        return STATUS_OK;
    }
    /* Another id, of the same key. */
    uint64_t keys[ROW_KEYS_MAX];
    size_t count = sqlite_row_keys(store->ledger, found->customer_number, transaction, keys);
    for (size_t i = 0; i < count; i++)
        if (keys[i] == key)
            return STATUS_OK;
    return damaged_index(store, error);
}

enum status sqlite_load_id(struct sqlite_store *store, struct ledger_fact *fact,
                           struct error *error)
{
    return find_rows(store, fact, false, take_found, error);
}

/* ---- standing credits ------------------------------------------------------------------------ */

/* Counts a CREDIT that settles the debit and was not rolled back. */
static enum status take_credit(struct sqlite_store *store, uint64_t key,
                               const struct ledger_row *row, struct ledger_fact *debit,
                               struct error *error)
{
    const struct ledger_transaction *credit = &row->transaction;
    struct ledger_fact fact;
    (void)key;
    if (!ledger_settles(credit) || strcmp(credit->reference, debit->transaction_id) != 0 ||
        strcmp(ledger_owner(credit), debit->owner_id) != 0)
        return STATUS_OK; /* another, of the same key */
    ledger_ask(&fact, ledger_owner(credit), credit->transaction_id);
    enum status status = sqlite_load_id(store, &fact, error);
    if (status != STATUS_OK || fact.id.rolled_back)
        return status;
    if (debit->id.standing_credits++ == 0)
        memcpy(debit->id.settled_by, credit->transaction_id, sizeof debit->id.settled_by);
    return STATUS_OK;
}

enum status sqlite_load_fact(struct sqlite_store *store, struct ledger_fact *fact,
                             struct error *error)
{
    fact->id = (struct ledger_id){0};
    enum status status = sqlite_load_id(store, fact, error);
    if (status == STATUS_OK && fact->counts_credits && fact->id.known &&
        fact->id.transaction.operation == LEDGER_DEBIT &&
        fact->id.transaction.outcome == LEDGER_APPLIED)
        status = find_rows(store, fact, true, take_credit, error);
    return status;
}

enum status sqlite_load_fact_once(struct sqlite_store *store, struct ledger_fact *fact,
                                  struct error *error)
{
    struct id_index *kept = store->index;
    struct rows_asked asked = {.store = store, .id = fact->transaction_id};
    const struct id_source source = source_of(&asked);
    int64_t last = 0;
    enum status status = find_end(store, &last, error);
    store->index = NULL;
    if (status == STATUS_OK)
        status = open_index(store, &source, last, false, true, error);
    if (status == STATUS_OK)
        status = sqlite_load_fact(store, fact, error);
    id_index_close(&store->index);
    store->index = kept;
    return status;
}

/* ---- in SQL ---------------------------------------------------------------------------------- */

/* ledger_id_number(owner, id): the number of the transaction of that id, NULL where there is none.
 * Brings the index up to the snapshot first, which costs little when it is there. */
static void number_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sqlite_store *store = sqlite3_user_data(context);
    struct ledger_fact fact = {.owner_id = ""};
    struct error error = {0};
    const char *owner = (const char *)sqlite3_value_text(values[0]);
    const char *id = (const char *)sqlite3_value_text(values[1]);
    CHECK(count == 2);
    if (owner == NULL || id == NULL || strlen(owner) >= sizeof fact.owner_id ||
        strlen(id) >= sizeof fact.transaction_id)
        return; /* NULL */
    ledger_ask(&fact, owner, id);
    enum status status = sqlite_ids_ready(store, false, &error);
    if (status == STATUS_OK)
        status = sqlite_load_id(store, &fact, &error);
    if (status == STATUS_OK && fact.id.number != 0)
        sqlite3_result_int64(context, fact.id.number);
    if (status == STATUS_OK)
        return;
    sqlite3_result_error(context, error.text, -1);
    sqlite3_result_error_code(context, SQLITE_ABORT);
}

void sqlite_ids_register(struct sqlite_store *store)
{
    CHECK(sqlite3_create_function(store->database, "ledger_id_number", 2,
                                  SQLITE_UTF8 | SQLITE_DIRECTONLY, store, number_function, NULL,
                                  NULL) == SQLITE_OK);
}
