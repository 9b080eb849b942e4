/*
 * The ids of the ledger's transactions in SQLite: from a key, which is a hash of customer and id,
 * to the numbers of the transactions that have to do with that id: the one that used it, and the
 * ROLLBACK that rolled it back.
 *
 * Ids come in no order, and an index of all of them would have every id written to a page of its
 * own. So they stand in levels, each in order of keys and some times as large as the one before. A
 * new id is written to the first, which is small. When a level has more than its share, a block of
 * neighbouring keys moves on to the next: these are neighbours there too, and share its pages. That
 * goes round and round through the keys, in the batches' own transactions, so that no batch waits
 * for a large move. (O'Neil and others, "The Log-Structured Merge-Tree", 1996: a rolling merge.) An
 * id is in exactly one level; who looks for it asks all.
 *
 * An id that is there and not found would be applied again, and one flipped bit in an index is
 * enough for that. So ids stand in blocks. A block says from where to where it goes, holds every id
 * of its level in between, and has a checksum over that; the blocks of a level leave no key out.
 * Whoever looks for an id has to get hold of the block that its key belongs to. That block proves
 * that the id is there, or that it is not, and any other answer is STATUS_MALFORMED: nothing is
 * decided.
 *
 * Two ids may have the same key; it is the transaction that tells them apart.
 */
#include "stores/platform/sqlite/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/digest.h"
#include "stores/platform/sqlite/columns.h"

int64_t sqlite_id_key(int64_t customer_number, struct text id)
{
    uint8_t bytes[sizeof customer_number + TRANSACTION_ID_SIZE];
    uint8_t hash[DIGEST_SIZE];
    uint64_t key = 0;
    CHECK(id.size <= TRANSACTION_ID_SIZE);
    for (size_t i = 0; i < sizeof customer_number; i++)
        bytes[i] = (uint8_t)((uint64_t)customer_number >> (8 * i));
    memcpy(bytes + sizeof customer_number, id.at, id.size);
    digest_sha256(bytes, sizeof customer_number + id.size, hash);
    for (size_t i = 0; i < sizeof key; i++)
        key = key << 8 | hash[i];
    return (int64_t)(key & IDS_KEY_MASK);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What frames the ids in a block's bytes: where it ends, and behind them the checksum. */
#define FRAME_SIZE (2 * sizeof(uint64_t))

static enum status damaged_block(struct sqlite_store *store, struct error *error)
{
    return platform_damaged(&store->base, "its index of transaction ids", error);
}

bool sqlite_id_block_read(int64_t place, const void *bytes, size_t size,
                          struct sqlite_id_block *block)
{
    uint64_t sum;
    if (bytes == NULL || size < FRAME_SIZE || (size - FRAME_SIZE) % sizeof(struct sqlite_id) != 0 ||
        (size - FRAME_SIZE) / sizeof(struct sqlite_id) > IDS_BLOCK_ROOM)
        return false;
    const char *at = bytes;
    memcpy(&sum, at + size - sizeof sum, sizeof sum);
    if (sum != checksum_add((uint64_t)place, at, size - sizeof sum))
        return false;
    block->place = place;
    memcpy(&block->until, at, sizeof block->until);
    block->count = (size - FRAME_SIZE) / sizeof(struct sqlite_id);
    memcpy(block->ids, at + sizeof block->until, block->count * sizeof(struct sqlite_id));
    return true;
}

/* The block that a place belongs to. */
static enum status load_block(struct sqlite_store *store, int64_t place,
                              struct sqlite_id_block *block, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    block->place = block->until = 0;
    block->count = 0;
    enum status status = sqlite_statement(store,
                                          "SELECT place, ids FROM ledger_id_block WHERE place <= ?1"
                                          " ORDER BY place DESC LIMIT 1",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, place);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (!found ||
        !sqlite_id_block_read(sqlite3_column_int64(statement, 0), sqlite3_column_blob(statement, 1),
                              (size_t)sqlite3_column_bytes(statement, 1), block) ||
        block->place > place || block->until <= place)
        status = damaged_block(store, error);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status write_block(struct sqlite_store *store, int64_t place, int64_t until,
                               const struct sqlite_id *ids, size_t count, struct error *error)
{
    char bytes[FRAME_SIZE + IDS_BLOCK_ROOM * sizeof(struct sqlite_id)];
    size_t size = sizeof until + count * sizeof ids[0];
    sqlite3_stmt *statement;
    if (count > IDS_BLOCK_ROOM)
        return platform_damaged(&store->base, "too many transaction ids have one key", error);
    memcpy(bytes, &until, sizeof until);
    if (count > 0)
        memcpy(bytes + sizeof until, ids, count * sizeof ids[0]);
    uint64_t sum = checksum_add((uint64_t)place, bytes, size);
    memcpy(bytes + size, &sum, sizeof sum);
    enum status status = sqlite_statement(
        store, "INSERT OR REPLACE INTO ledger_id_block (place, ids) VALUES (?1, ?2)", &statement,
        error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, place);
    bind_blob(statement, 2, bytes, (int)(size + sizeof sum));
    return sqlite_run(store, statement, error);
}

/* Writes ids that have become too many for one block as several; each has room for more. */
static enum status write_blocks(struct sqlite_store *store, int level, int64_t place, int64_t until,
                                const struct sqlite_id *ids, size_t count, struct error *error)
{
    enum status status = STATUS_OK;
    while (count > IDS_BLOCK_MAX && status == STATUS_OK) {
        size_t part = IDS_BLOCK_MAX / 2;
        while (part < count &&
               sqlite_id_place(level, ids[part].key) == sqlite_id_place(level, ids[part - 1].key))
            part++;
        if (part == count)
            break;
        int64_t next = sqlite_id_place(level, ids[part].key);
        status = write_block(store, place, next, ids, part, error);
        place = next;
        ids += part;
        count -= part;
    }
    return status == STATUS_OK ? write_block(store, place, until, ids, count, error) : status;
}

int sqlite_id_compare(const void *one, const void *other)
{
    const struct sqlite_id *a = one;
    const struct sqlite_id *b = other;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* How many of `ids`, which are sorted, belong into the block. */
static size_t belonging(const struct sqlite_id_block *block, int level, const struct sqlite_id *ids,
                        size_t count)
{
    size_t at = 0;
    while (at < count && sqlite_id_place(level, ids[at].key) < block->until)
        at++;
    return at;
}

static void merge(const struct sqlite_id *one, size_t one_count, const struct sqlite_id *other,
                  size_t other_count, struct sqlite_id *out)
{
    size_t i = 0;
    size_t j = 0;
    while (i < one_count || j < other_count) {
        bool first =
            j == other_count || (i < one_count && sqlite_id_compare(&one[i], &other[j]) < 0);
        *out++ = first ? one[i++] : other[j++];
    }
}

/* Adds `ids`, which are sorted, to a level. */
static enum status add_to_level(struct sqlite_store *store, int level, const struct sqlite_id *ids,
                                size_t count, struct error *error)
{
    struct sqlite_id_block block;
    struct sqlite_id merged[IDS_BLOCK_ROOM + IDS_ADDED_MAX];
    enum status status = STATUS_OK;
    CHECK(count <= IDS_ADDED_MAX);
    while (count > 0 && status == STATUS_OK) {
        status = load_block(store, sqlite_id_place(level, ids[0].key), &block, error);
        if (status != STATUS_OK)
            break;
        size_t some = belonging(&block, level, ids, count);
        merge(block.ids, block.count, ids, some, merged);
        status =
            write_blocks(store, level, block.place, block.until, merged, block.count + some, error);
        ids += some;
        count -= some;
    }
    return status;
}

/* ---- finding --------------------------------------------------------------------------------- */

enum status sqlite_ids_find(struct sqlite_store *store, int64_t key, int64_t numbers[IDS_FOUND_MAX],
                            size_t *count, struct error *error)
{
    struct sqlite_id_block block;
    size_t found = 0;
    for (int level = 0; level < IDS_LEVELS; level++) {
        enum status status = load_block(store, sqlite_id_place(level, key), &block, error);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < block.count && block.ids[i].key <= key; i++) {
            if (block.ids[i].key != key)
                continue;
            if (found == IDS_FOUND_MAX)
                return platform_damaged(&store->base, "too many transaction ids have one key",
                                        error);
            numbers[found++] = block.ids[i].number;
        }
    }
    *count = found;
    return STATUS_OK;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Blocks of a level that one batch moves at most: as many as come, also when they are not full. */
#define BLOCKS_A_BATCH (8 * LEDGER_BATCH_MAX / IDS_BLOCK_MAX)

struct level {
    int64_t ids;         /* that are in it */
    int64_t next_place;  /* of the block that moves on next */
    int64_t last_number; /* of the first level: of the newest transaction */
};

static enum status load_levels(struct sqlite_store *store, struct level levels[IDS_LEVELS],
                               struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    int count = 0;
    enum status status = sqlite_statement(
        store, "SELECT ids, next_place, last_number FROM ledger_id_level ORDER BY level",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found &&
           count < IDS_LEVELS) {
        struct level *level = &levels[count];
        level->ids = sqlite3_column_int64(statement, 0);
        level->next_place = sqlite3_column_int64(statement, 1);
        level->last_number = sqlite3_column_int64(statement, 2);
        if (level->ids < 0 || level->next_place < sqlite_id_place(count, 0) ||
            level->next_place >= sqlite_id_place(count + 1, 0))
            break;
        count++;
    }
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK && count != IDS_LEVELS)
        status = platform_damaged(&store->base, "its ids have no levels", error);
    return status;
}

static enum status save_level(struct sqlite_store *store, int at, const struct level *level,
                              struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store,
                                          "UPDATE ledger_id_level SET ids = ?2, next_place = ?3,"
                                          " last_number = ?4 WHERE level = ?1",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, at);
    bind_integer(statement, 2, level->ids);
    bind_integer(statement, 3, level->next_place);
    bind_integer(statement, 4, level->last_number);
    return sqlite_run(store, statement, error);
}

static enum status move_block(struct sqlite_store *store, int at, struct level *from,
                              struct level *to, struct error *error)
{
    struct sqlite_id_block block;
    enum status status = load_block(store, from->next_place, &block, error);
    if (status == STATUS_OK)
        status = write_block(store, block.place, block.until, NULL, 0, error);
    if (status == STATUS_OK)
        status = add_to_level(store, at + 1, block.ids, block.count, error);
    if (status != STATUS_OK)
        return status;
    from->ids -= (int64_t)block.count;
    to->ids += (int64_t)block.count;
    from->next_place =
        block.until == sqlite_id_place(at + 1, 0) ? sqlite_id_place(at, 0) : block.until;
    return STATUS_OK;
}

/* Moves blocks on where a level has more than its share. */
static enum status settle(struct sqlite_store *store, struct level levels[IDS_LEVELS],
                          struct error *error)
{
    enum status status = STATUS_OK;
    int64_t share = IDS_FIRST_LEVEL;
    bool changed[IDS_LEVELS] = {true};
    for (int at = 0; at < IDS_LEVELS - 1 && status == STATUS_OK; at++) {
        for (int blocks = 0; blocks < BLOCKS_A_BATCH && levels[at].ids > share; blocks++) {
            status = move_block(store, at, &levels[at], &levels[at + 1], error);
            if (status != STATUS_OK)
                return status;
            changed[at] = changed[at + 1] = true;
        }
        share *= IDS_GROWTH;
    }
    for (int at = 0; at < IDS_LEVELS && status == STATUS_OK; at++)
        if (changed[at])
            status = save_level(store, at, &levels[at], error);
    return status;
}

enum status sqlite_ids_add(struct sqlite_store *store, struct sqlite_id *ids, size_t count,
                           int64_t last_number, struct error *error)
{
    struct level levels[IDS_LEVELS] = {{0}};
    qsort(ids, count, sizeof ids[0], sqlite_id_compare);
    enum status status = load_levels(store, levels, error);
    if (status == STATUS_OK)
        status = add_to_level(store, 0, ids, count, error);
    levels[0].ids += (int64_t)count;
    levels[0].last_number = last_number;
    return status == STATUS_OK ? settle(store, levels, error) : status;
}

enum status sqlite_ids_last_number(struct sqlite_store *store, int64_t *number, struct error *error)
{
    struct level levels[IDS_LEVELS] = {{0}};
    enum status status = load_levels(store, levels, error);
    if (status == STATUS_OK)
        *number = levels[0].last_number;
    return status;
}

/* ---- in SQL ---------------------------------------------------------------------------------- */

/* ledger_id_key(customer_number, transaction_id) */
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

/* Each of these is in order, so that SQLite merges them and sorts only what has been rolled
 * back. */
static const char read_former[] =
    "SELECT key, number FROM ledger_id_0 UNION ALL SELECT key, number FROM ledger_id_1"
    " UNION ALL SELECT key, number FROM ledger_id_2 UNION ALL SELECT key, number FROM ledger_id_3"
    " UNION ALL SELECT key, number FROM ledger_id_4"
    " UNION ALL SELECT ledger_id_key(customer_number, target_id), transaction_number"
    "  FROM ledger_rollback ORDER BY 1, 2";

static enum status take_over(struct sqlite_store *store, struct level levels[IDS_LEVELS],
                             struct error *error)
{
    const int last = IDS_LEVELS - 1;
    struct sqlite_id ids[LEDGER_BATCH_MAX];
    size_t count = 0;
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(store, read_former, &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        ids[count++] = (struct sqlite_id){sqlite3_column_int64(statement, 0),
                                          sqlite3_column_int64(statement, 1)};
        levels[last].ids++;
        if (count < LEDGER_BATCH_MAX)
            continue;
        status = add_to_level(store, last, ids, count, error);
        count = 0;
        if (status != STATUS_OK)
            break;
    }
    (void)sqlite3_reset(statement);
    return status == STATUS_OK ? add_to_level(store, last, ids, count, error) : status;
}

/* ledger_ids_take_over(last_number), for the migration that made the blocks: fills them with the
 * ids of the tables before. Runs statements of its own inside the one that calls it. */
static void take_over_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sqlite_store *store = sqlite3_user_data(context);
    struct level levels[IDS_LEVELS] = {{0}};
    struct error error = {0};
    enum status status = STATUS_OK;
    CHECK(count == 1);
    for (int at = 0; at < IDS_LEVELS && status == STATUS_OK; at++) {
        levels[at].next_place = sqlite_id_place(at, 0);
        status =
            write_block(store, sqlite_id_place(at, 0), sqlite_id_place(at + 1, 0), NULL, 0, &error);
    }
    if (status == STATUS_OK)
        status = take_over(store, levels, &error);
    levels[0].last_number = sqlite3_value_int64(values[0]);
    for (int at = 0; at < IDS_LEVELS && status == STATUS_OK; at++)
        status = save_level(store, at, &levels[at], &error);
    if (status != STATUS_OK)
        sqlite3_result_error(context, error.text, -1);
}

void sqlite_ids_register(struct sqlite_store *store)
{
    CHECK(sqlite3_create_function(store->database, "ledger_id_key", 2,
                                  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                  key_function, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_create_function(store->database, "ledger_ids_take_over", 1,
                                  SQLITE_UTF8 | SQLITE_DIRECTONLY, store, take_over_function, NULL,
                                  NULL) == SQLITE_OK);
}
