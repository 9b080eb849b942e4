/*
 * Whether the index of transaction ids is what the transactions make it, in one pass over each, in
 * constant memory: the levels are read side by side, in order of keys, so that two transactions of
 * one id come one after the other. The index and the transactions lead to the same keys and numbers
 * when they are as many and their sums are the same; only when they are not is each looked up.
 */
#include <string.h>

#include "base/checksum.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids.h"

/* Of keys and numbers, in whatever order. */
struct sum {
    uint64_t count, of_checksums;
};

static void add_to_sum(struct sum *sum, const struct sqlite_id *id)
{
    sum->count++;
    sum->of_checksums += checksum_add(0, id, sizeof *id);
}

static enum status broken(struct error *error, struct text row, const char *what)
{
    if (!text_is_plain(row))
        row = TEXT("a row");
    return error_set(error, STATUS_MALFORMED,
                     "the ledger is broken: rows are without their counterpart: %.*s: %s",
                     (int)row.size, row.at, what);
}

/* ---- the index ------------------------------------------------------------------------------- */

/* A walk through a level. */
struct cursor {
    sqlite3_stmt *blocks;
    int64_t until; /* where the next block has to begin */
    size_t at;     /* in the block */
    uint64_t count;
    struct sqlite_id_block block;
};

struct index_walk {
    struct sqlite_store *store;
    struct cursor cursors[IDS_LEVELS];
    struct sum sum;
    struct sqlite_id last;       /* key -1 before the first */
    int64_t same[IDS_FOUND_MAX]; /* numbers that the last key leads to */
    size_t same_count;
};

static enum status misfit(struct error *error)
{
    return broken(error, TEXT("the index of ids"), "a block of it is not what was written");
}

/* Brings the cursor to its next id, or to its end: then the block is empty. */
static enum status advance(struct index_walk *walk, int level, struct error *error)
{
    struct cursor *cursor = &walk->cursors[level];
    bool found = true;
    enum status status = STATUS_OK;
    cursor->at++;
    while (status == STATUS_OK && found && cursor->at >= cursor->block.count) {
        status = sqlite_first(walk->store, cursor->blocks, &found, error);
        if (status != STATUS_OK || !found)
            break;
        cursor->at = 0;
        if (!sqlite_id_block_read(
                sqlite3_column_int64(cursor->blocks, 0), sqlite3_column_blob(cursor->blocks, 1),
                (size_t)sqlite3_column_bytes(cursor->blocks, 1), &cursor->block) ||
            cursor->block.place != cursor->until || cursor->block.until <= cursor->block.place)
            return misfit(error);
        cursor->until = cursor->block.until;
    }
    if (!found)
        cursor->block.count = cursor->at = 0;
    return status;
}

static enum status open_cursors(struct index_walk *walk, struct error *error)
{
    for (int level = 0; level < IDS_LEVELS; level++) {
        struct cursor *cursor = &walk->cursors[level];
        if (sqlite3_prepare_v2(walk->store->database,
                               "SELECT place, ids FROM ledger_id_block"
                               " WHERE place >= ?1 AND place < ?2 ORDER BY place",
                               -1, &cursor->blocks, NULL) != SQLITE_OK)
            return sqlite_failure(walk->store, error);
        cursor->until = sqlite_id_place(level, 0);
        bind_integer(cursor->blocks, 1, cursor->until);
        bind_integer(cursor->blocks, 2, sqlite_id_place(level + 1, 0));
        enum status status = advance(walk, level, error);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status compare_ids(struct index_walk *walk, int64_t one, int64_t other,
                               struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        walk->store,
        "SELECT 'transaction ' || one.transaction_id FROM ledger_transaction AS one"
        " JOIN ledger_transaction AS other ON other.customer_number = one.customer_number"
        " AND other.transaction_id = one.transaction_id"
        " WHERE one.number = ?1 AND other.number = ?2",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, one);
    bind_integer(statement, 2, other);
    status = sqlite_first(walk->store, statement, &found, error);
    if (status == STATUS_OK && found)
        status = broken(error, read_text(statement, 0), "its id is used twice");
    (void)sqlite3_reset(statement);
    return status;
}

/* Ids of one key come one after the other: none of them may be another's. */
static enum status compare_with_same(struct index_walk *walk, const struct sqlite_id *id,
                                     struct error *error)
{
    enum status status = STATUS_OK;
    if (id->key != walk->last.key)
        walk->same_count = 0;
    for (size_t i = 0; i < walk->same_count && status == STATUS_OK; i++)
        status = compare_ids(walk, walk->same[i], id->number, error);
    if (status == STATUS_OK && walk->same_count == IDS_FOUND_MAX)
        status = broken(error, TEXT("the index of ids"), "too many of them have one key");
    if (status == STATUS_OK)
        walk->same[walk->same_count++] = id->number;
    return status;
}

/* The lowest of the ids that the cursors have come to; -1: there are no more. */
static int lowest(const struct index_walk *walk)
{
    int lowest = -1;
    for (int level = 0; level < IDS_LEVELS; level++) {
        const struct cursor *cursor = &walk->cursors[level];
        if (cursor->block.count > 0 &&
            (lowest < 0 ||
             sqlite_id_compare(&cursor->block.ids[cursor->at],
                               &walk->cursors[lowest].block.ids[walk->cursors[lowest].at]) < 0))
            lowest = level;
    }
    return lowest;
}

static enum status walk_index(struct index_walk *walk, struct error *error)
{
    enum status status = open_cursors(walk, error);
    for (int level; status == STATUS_OK && (level = lowest(walk)) >= 0;) {
        struct cursor *cursor = &walk->cursors[level];
        const struct sqlite_id id = cursor->block.ids[cursor->at];
        int64_t place = sqlite_id_place(level, id.key);
        if (place < cursor->block.place || place >= cursor->block.until ||
            sqlite_id_compare(&walk->last, &id) >= 0)
            return misfit(error);
        status = compare_with_same(walk, &id, error);
        add_to_sum(&walk->sum, &id);
        cursor->count++;
        walk->last = id;
        if (status == STATUS_OK)
            status = advance(walk, level, error);
    }
    return status;
}

/* After the walk: every level was covered to its end, and holds as many as is written of it. */
static enum status check_levels(struct index_walk *walk, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    int level = 0;
    enum status status = sqlite_statement(
        walk->store, "SELECT level, ids, last_number FROM ledger_id_level ORDER BY level",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(walk->store, statement, &found, error)) == STATUS_OK && found &&
           level < IDS_LEVELS) {
        const struct cursor *cursor = &walk->cursors[level];
        if (cursor->until != sqlite_id_place(level + 1, 0) ||
            sqlite3_column_int64(statement, 0) != level ||
            (uint64_t)sqlite3_column_int64(statement, 1) != cursor->count ||
            (level > 0 && sqlite3_column_int64(statement, 2) != 0))
            break;
        level++;
    }
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK && (level != IDS_LEVELS || found))
        status =
            broken(error, TEXT("the levels of ids"), "they do not hold what is written of them");
    return status;
}

/* ---- the transactions ------------------------------------------------------------------------ */

static enum status look_up(struct sqlite_store *store, const struct sqlite_id *id,
                           struct text transaction_id, struct error *error)
{
    int64_t numbers[IDS_FOUND_MAX];
    size_t count = 0;
    enum status status = sqlite_ids_find(store, id->key, numbers, &count, error);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == id->number)
            return status;
    return status == STATUS_OK ? broken(error, transaction_id, "its id is not to be found")
                               : status;
}

/* Sums up the ids of all transactions; with `search`, looks each of them up instead. */
static enum status walk_transactions(struct sqlite_store *store, bool search, struct sum *sum,
                                     struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store,
        "SELECT number, customer_number, transaction_id,"
        " CASE WHEN operation = 'ROLLBACK' AND sequence IS NOT NULL THEN reference END"
        " FROM ledger_transaction ORDER BY number",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        for (int column = 2; column <= 3 && status == STATUS_OK; column++) {
            struct text text = read_text(statement, column);
            if (text.at == NULL || text.size > TRANSACTION_ID_SIZE)
                continue;
            const struct sqlite_id id = {sqlite_id_key(sqlite3_column_int64(statement, 1), text),
                                         sqlite3_column_int64(statement, 0)};
            if (search)
                status = look_up(store, &id, text, error);
            else
                add_to_sum(sum, &id);
        }
        if (status != STATUS_OK)
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

static enum status compare(struct index_walk *walk, struct error *error)
{
    struct sum sum = {0};
    int64_t last = 0;
    int64_t stored = 0;
    enum status status = walk_transactions(walk->store, false, &sum, error);
    if (status == STATUS_OK &&
        (sum.count != walk->sum.count || sum.of_checksums != walk->sum.of_checksums)) {
        status = walk_transactions(walk->store, true, &sum, error);
        return status == STATUS_OK
                   ? broken(error, TEXT("the index of ids"), "it has ids that no transaction has")
                   : status;
    }
    if (status == STATUS_OK)
        status = sqlite_ids_last_number(walk->store, &last, error);
    if (status == STATUS_OK)
        status = sqlite_number(
            walk->store, "SELECT coalesce(max(number), 0) FROM ledger_transaction", &stored, error);
    if (status == STATUS_OK && stored != last)
        status = broken(error, TEXT("the index of ids"), "the last transaction is another one");
    return status;
}

enum status sqlite_ids_audit(struct sqlite_store *store, struct error *error)
{
    struct index_walk walk = {.store = store, .last.key = -1};
    enum status status = walk_index(&walk, error);
    for (int level = 0; level < IDS_LEVELS; level++)
        (void)sqlite3_finalize(walk.cursors[level].blocks);
    if (status == STATUS_OK)
        status = check_levels(&walk, error);
    return status == STATUS_OK ? compare(&walk, error) : status;
}
