/*
 * Whether each id of a customer is used once and rolled back once, and whether the index of ids
 * leads to what the rows make of it. The keys of all rows are sorted by SQLite, in a file when they
 * are too many for memory; so two rows of one id come one after the other. The index has the same
 * keys and numbers when they are as many and their sums are the same.
 */
#include <string.h>

#include "base/checksum.h"
#include "stores/platform/sqlite/id_index.h"
#include "stores/platform/sqlite/ids.h"

/* Of keys and numbers, in whatever order. */
struct sum {
    uint64_t count, of_checksums;
};

static void add_to_sum(struct sum *sum, uint64_t key, int64_t number)
{
    const uint64_t pair[2] = {key, (uint64_t)number};
    sum->count++;
    sum->of_checksums += checksum_add(0, pair, sizeof pair);
}

static enum status broken(struct error *error, struct text row, const char *what)
{
    if (!text_is_plain(row))
        row = TEXT("a row");
    return error_set(error, STATUS_MALFORMED,
                     "the ledger is broken: rows are without their counterpart: %.*s: %s",
                     (int)row.size, row.at, what);
}

/* ---- the rows -------------------------------------------------------------------------------- */

enum kind { KIND_USED, KIND_ROLLED_BACK, KIND_SETTLED };

static const char keys_in_order[] =
    "SELECT ledger_id_key(customer_number, transaction_id), 0, number FROM ledger_transaction"
    " UNION ALL SELECT ledger_id_key(customer_number, reference), 1, number"
    "  FROM ledger_transaction WHERE operation = 'ROLLBACK' AND sequence IS NOT NULL"
    " UNION ALL SELECT ledger_settling_key(customer_number, reference), 2, number"
    "  FROM ledger_transaction WHERE operation = 'CREDIT' AND outcome = 'applied'"
    "  AND reference IS NOT NULL ORDER BY 1, 2, 3";

/* Two rows of one key: have they the same id? */
static enum status compare_rows(struct sqlite_store *store, enum kind kind, int64_t one,
                                int64_t other, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store,
        kind == KIND_USED
            ? "SELECT one.transaction_id FROM ledger_transaction AS one, ledger_transaction AS two"
              " WHERE one.number = ?1 AND two.number = ?2"
              " AND one.customer_number = two.customer_number"
              " AND one.transaction_id = two.transaction_id"
            : "SELECT one.reference FROM ledger_transaction AS one, ledger_transaction AS two"
              " WHERE one.number = ?1 AND two.number = ?2"
              " AND one.customer_number = two.customer_number AND one.reference = two.reference",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, one);
    bind_integer(statement, 2, other);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        status =
            broken(error, read_text(statement, 0),
                   kind == KIND_USED ? "two transactions have this id" : "it is rolled back twice");
    (void)sqlite3_reset(statement);
    return status;
}

#define SAME_MAX 64 /* rows of one key, of different ids: more than there ever are */

/* Rows of one key and kind. */
struct group {
    uint64_t key;
    enum kind kind;
    int64_t numbers[SAME_MAX];
    size_t count;
};

static enum status take_key(struct sqlite_store *store, struct group *group, uint64_t key,
                            enum kind kind, int64_t number, struct error *error)
{
    enum status status = STATUS_OK;
    if (group->count == 0 || group->key != key || group->kind != kind)
        *group = (struct group){.key = key, .kind = kind};
    for (size_t i = 0; i < group->count && kind != KIND_SETTLED && status == STATUS_OK; i++)
        status = compare_rows(store, kind, group->numbers[i], number, error);
    if (group->count < SAME_MAX)
        group->numbers[group->count++] = number;
    return status;
}

static enum status walk_rows(struct sqlite_store *store, struct sum *sum, struct error *error)
{
    struct group group = {0};
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(store, keys_in_order, &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        uint64_t key = (uint64_t)sqlite3_column_int64(statement, 0);
        int64_t number = sqlite3_column_int64(statement, 2);
        add_to_sum(sum, key, number);
        status = take_key(store, &group, key, (enum kind)sqlite3_column_int(statement, 1), number,
                          error);
        if (status != STATUS_OK)
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

/* ---- the index ------------------------------------------------------------------------------- */

static bool sum_entry(void *context, const struct id_entry *entry)
{
    add_to_sum(context, entry->key, entry->number);
    return true;
}

enum status sqlite_ids_audit(struct sqlite_store *store, struct error *error)
{
    struct sum of_rows = {0};
    struct sum of_index = {0};
    enum status status = walk_rows(store, &of_rows, error);
    if (status == STATUS_OK)
        status = sqlite_ids_ready(store, false, error);
    if (status == STATUS_OK)
        status = id_index_walk(store->index, sum_entry, &of_index, error);
    if (status == STATUS_OK &&
        (of_rows.count != of_index.count || of_rows.of_checksums != of_index.of_checksums))
        status = broken(error, TEXT("the index of ids"),
                        "it is not that of the rows; stop croupier and delete the files of the "
                        "index, which are made again");
    return status;
}
