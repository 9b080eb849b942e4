/*
 * The ids of the ledger's transactions in SQLite: from a key, which is a hash of customer and id,
 * to the number of the transaction.
 *
 * Ids come in no order, and an index of all of them would have every id written to a page of its
 * own. So they stand in levels, each a table in order of keys and some times as large as the one
 * before. A new id is written to the first, which is small. When a level has more than its share, a
 * slice of neighbouring keys moves on to the next: these are neighbours there too, and share its
 * pages. The slices go round and round through the keys, in the batches' own transactions, a few
 * rows in each, so that no batch waits for a large one. (O'Neil and others, "The Log-Structured
 * Merge-Tree", 1996: a rolling merge.) An id is in exactly one level; who looks for it asks all.
 *
 * Two ids may have the same key; it is the transaction that tells them apart.
 */
#include <openssl/sha.h>
#include <string.h>

#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

#define LEVELS 5
/* A test makes these small, to see ids move through all levels. */
#ifndef IDS_FIRST_LEVEL
#define IDS_FIRST_LEVEL 4096
#define IDS_GROWTH 16
#define IDS_SLICE LEDGER_BATCH_MAX
#endif
/* Slices of a level that one batch moves: one for what comes, one for those that were cut short by
 * the end of the keys. */
#define SLICES_A_BATCH (1 + LEDGER_BATCH_MAX / IDS_SLICE)

int64_t sqlite_id_key(int64_t customer_number, struct text id)
{
    uint8_t bytes[sizeof customer_number + TRANSACTION_ID_SIZE];
    uint8_t hash[SHA256_DIGEST_LENGTH];
    uint64_t key = 0;
    CHECK(id.size <= TRANSACTION_ID_SIZE);
    for (size_t i = 0; i < sizeof customer_number; i++)
        bytes[i] = (uint8_t)((uint64_t)customer_number >> (8 * i));
    memcpy(bytes + sizeof customer_number, id.at, id.size);
    CHECK(SHA256(bytes, sizeof customer_number + id.size, hash) != NULL);
    for (size_t i = 0; i < sizeof key; i++)
        key = key << 8 | hash[i];
    return (int64_t)(key & INT64_MAX);
}

static void key_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    CHECK(count == 2);
    struct text id = {(const char *)sqlite3_value_text(values[1]), 0};
    id.size = id.at == NULL ? 0 : (size_t)sqlite3_value_bytes(values[1]);
    if (id.at == NULL || id.size > TRANSACTION_ID_SIZE)
        sqlite3_result_null(context); /* somebody tampered */
    else
        sqlite3_result_int64(context, sqlite_id_key(sqlite3_value_int64(values[0]), id));
}

void sqlite_ids_register(sqlite3 *database)
{
    CHECK(sqlite3_create_function(database, "ledger_id_key", 2,
                                  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                  key_function, NULL, NULL) == SQLITE_OK);
}

/* ---- writing --------------------------------------------------------------------------------- */

#define ID_INSERT "INSERT INTO ledger_id_0 (key, number) VALUES "
#define ID_ROW "(?, ?)"

enum status sqlite_ids_add(struct sqlite_store *store, const int64_t *keys, size_t count,
                           int64_t first_number, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0, rows; i < count && status == STATUS_OK; i += rows) {
        sqlite3_stmt *statement;
        rows = sqlite_rows_next(count - i);
        status = sqlite_statement(store, SQLITE_WRITE_ROWS(rows, ID_INSERT, ID_ROW, ""), &statement,
                                  error);
        if (status != STATUS_OK)
            break;
        for (size_t row = 0; row < rows; row++) {
            bind_integer(statement, 1 + 2 * (int)row, keys[i + row]);
            bind_integer(statement, 2 + 2 * (int)row, first_number + (int64_t)(i + row));
        }
        status = sqlite_run(store, statement, error);
    }
    return status;
}

/* ---- moving on ------------------------------------------------------------------------------- */

struct level {
    int64_t moved;    /* ids that have left it, ever */
    int64_t next_key; /* where the next slice begins */
};

#define LAST_OF_SLICE(from) \
    "SELECT key FROM ledger_id_" from " WHERE key >= ?1 ORDER BY key LIMIT 1 OFFSET ?2"
#define COPY(from, to)                                                     \
    "INSERT INTO ledger_id_" to " SELECT key, number FROM ledger_id_" from \
    " WHERE key BETWEEN ?1 AND ?2 ORDER BY key, number"
#define REMOVE(from) "DELETE FROM ledger_id_" from " WHERE key BETWEEN ?1 AND ?2"

static const struct {
    const char *last_of_slice, *copy, *remove;
} moves[LEVELS - 1] = {
    {LAST_OF_SLICE("0"), COPY("0", "1"), REMOVE("0")},
    {LAST_OF_SLICE("1"), COPY("1", "2"), REMOVE("1")},
    {LAST_OF_SLICE("2"), COPY("2", "3"), REMOVE("2")},
    {LAST_OF_SLICE("3"), COPY("3", "4"), REMOVE("3")},
};

static enum status load_levels(struct sqlite_store *store, struct level levels[LEVELS - 1],
                               struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    size_t count = 0;
    enum status status = sqlite_statement(
        store, "SELECT moved, next_key FROM ledger_id_level ORDER BY level", &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found &&
           count < LEVELS - 1) {
        levels[count].moved = sqlite3_column_int64(statement, 0);
        levels[count++].next_key = sqlite3_column_int64(statement, 1);
    }
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK && count != LEVELS - 1)
        status = platform_damaged(&store->base, "its ids have no levels", error);
    return status;
}

/* The last key of the slice that begins at `from`. */
static enum status find_slice(struct sqlite_store *store, size_t level, int64_t from, int64_t *to,
                              struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(store, moves[level].last_of_slice, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, from);
    bind_integer(statement, 2, IDS_SLICE - 1);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    *to = found ? sqlite3_column_int64(statement, 0) : INT64_MAX; /* there are fewer */
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

static enum status run_on_slice(struct sqlite_store *store, const char *sql, int64_t from,
                                int64_t to, int *rows, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, from);
    bind_integer(statement, 2, to);
    status = sqlite_run(store, statement, error);
    *rows = sqlite3_changes(store->database);
    return status;
}

static enum status move_slice(struct sqlite_store *store, size_t at, struct level *level,
                              struct error *error)
{
    int64_t from = level->next_key;
    int64_t to = INT64_MAX;
    int copied = 0;
    int removed = 0;
    enum status status = find_slice(store, at, from, &to, error);
    if (status == STATUS_OK)
        status = run_on_slice(store, moves[at].copy, from, to, &copied, error);
    if (status == STATUS_OK)
        status = run_on_slice(store, moves[at].remove, from, to, &removed, error);
    if (status == STATUS_OK && copied != removed)
        status = platform_damaged(&store->base, "ids do not move on", error);
    if (status != STATUS_OK)
        return status;
    level->moved += removed;
    level->next_key = to == INT64_MAX ? 0 : to + 1;
    return STATUS_OK;
}

static enum status save_level(struct sqlite_store *store, size_t at, const struct level *level,
                              struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store, "UPDATE ledger_id_level SET moved = ?2, next_key = ?3 WHERE level = ?1", &statement,
        error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, (int64_t)at);
    bind_integer(statement, 2, level->moved);
    bind_integer(statement, 3, level->next_key);
    return sqlite_run(store, statement, error);
}

/* `came` is how many ids have ever come to the level. */
static enum status lighten(struct sqlite_store *store, size_t at, struct level *level, int64_t came,
                           int64_t share, struct error *error)
{
    enum status status = STATUS_OK;
    int slices = 0;
    while (status == STATUS_OK && slices < SLICES_A_BATCH &&
           came - level->moved >= share + IDS_SLICE) {
        status = move_slice(store, at, level, error);
        slices++;
    }
    if (status == STATUS_OK && slices > 0)
        status = save_level(store, at, level, error);
    return status;
}

enum status sqlite_ids_settle(struct sqlite_store *store, int64_t last_number, struct error *error)
{
    struct level levels[LEVELS - 1] = {{0}};
    int64_t came = last_number;
    int64_t share = IDS_FIRST_LEVEL;
    enum status status = load_levels(store, levels, error);
    for (size_t i = 0; i < LEVELS - 1 && status == STATUS_OK; i++) {
        status = lighten(store, i, &levels[i], came, share, error);
        came = levels[i].moved;
        share *= IDS_GROWTH;
    }
    return status;
}
