/*
 * The statements of records, which every engine shares (stores/platform/sql.h), in SQLite: one
 * after the other, in a transaction of the connection's. SQLite has one writer at a time, so
 * changes become visible in the order of their revisions.
 */
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

/* $1 may occur anywhere and more than once, so it is bound by name. */
static void bind_parameter(sqlite3_stmt *statement, int number, const struct column_value *value)
{
    char name[16];
    (void)snprintf(name, sizeof name, "$%d", number);
    int at = sqlite3_bind_parameter_index(statement, name);
    CHECK(at > 0);
    bind_value(statement, at, value);
}

static enum status run_query(struct sqlite_store *store, struct sql_query *query,
                             struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    bool wanted = true;
    query->affected = query->rows = 0;
    enum status status = sqlite_statement(store, query->sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; query->parameters != NULL && i < query->parameters->count; i++)
        bind_parameter(statement, i + 1, &query->parameters->at[i]);
    const struct sql_row row = sqlite_sql_row(&statement);
    while (wanted && (status = sqlite_first(store, statement, &found, error)) == STATUS_OK &&
           found) {
        query->rows++;
        wanted = query->row == NULL || query->row(query->context, &row);
    }
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK && sqlite3_stmt_readonly(statement) == 0)
        query->affected = (uint64_t)sqlite3_changes64(store->database);
    return status;
}

static enum status sqlite_run_queries(struct platform_store *base, struct sql_query *queries,
                                      size_t count, bool last, struct error *error)
{
    enum status status = STATUS_OK;
    (void)last; /* nothing is nearer by committing at once */
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = run_query(sqlite_store_of(base), &queries[i], error);
        queries[i].failed = status != STATUS_OK;
    }
    return status;
}

/* Sorts spill into files. The setting cannot be changed within a transaction: then
 * sqlite_snapshot_begin has done it. */
static enum status sort_in_files(struct sqlite_store *store, struct error *error)
{
    return sqlite3_get_autocommit(store->database) == 0
               ? STATUS_OK
               : sqlite_execute(store, "PRAGMA temp_store = FILE", error);
}

static enum status sqlite_read_queries(struct platform_store *base, struct sql_query *queries,
                                       size_t count, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status != STATUS_OK)
        return status;
    /* One statement is a snapshot by itself; and there may be one open (snapshot_begin). */
    if (count == 1 && queries[0].stream)
        status = sort_in_files(store, error);
    if (status != STATUS_OK)
        return status;
    if (count == 1 || sqlite3_get_autocommit(store->database) == 0)
        return sqlite_run_queries(base, queries, count, false, error);
    status = sqlite_execute(store, "BEGIN", error); /* its first read takes the snapshot */
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, sqlite_run_queries(base, queries, count, false, error), error);
}

static enum status sqlite_transact(struct platform_store *base, sql_body *body, void *context,
                                   struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_begin(store, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, body(base, context, error), error);
}

enum status sqlite_snapshot_begin(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sort_in_files(store, error);
    return status == STATUS_OK ? sqlite_execute(store, "BEGIN", error) : status;
}

void sqlite_snapshot_end(struct platform_store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    if (store->database != NULL && sqlite3_get_autocommit(store->database) == 0)
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
}

const struct sql_verbs sqlite_sql = {
    .read = sqlite_read_queries, .transact = sqlite_transact, .run = sqlite_run_queries};
