/* What the tables of customers, keys and addresses and those of games have in common: their changes
 * are numbered, by the one row of a table of revisions, and their rows are looked up by an id. */
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

enum status sqlite_number(struct sqlite_store *store, const char *sql, int64_t *number,
                          struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status == STATUS_OK)
        status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        *number = sqlite3_column_int64(statement, 0);
    else
        status = error_set(error, STATUS_MALFORMED,
                           "%s: is damaged (it has no revision); restore a backup", store->path);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_change_begin(struct sqlite_store *store, const char *next, int64_t *revision,
                                struct error *error)
{
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_number(store, next, revision, error);
    return status == STATUS_OK ? STATUS_OK : sqlite_end(store, status, error);
}

enum status sqlite_exists(struct sqlite_store *store, const char *sql, struct text id, bool *found,
                          struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    CHECK(sqlite3_bind_text(statement, 1, id.at, (int)id.size, SQLITE_STATIC) == SQLITE_OK);
    status = sqlite_first(store, statement, found, error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_no_change(struct sqlite_store *store, bool exists, const char *what,
                             struct error *error)
{
    if (exists)
        return error_set(error, STATUS_EXISTS, "%s: the %s was changed meanwhile; try again",
                         store->path, what);
    return error_set(error, STATUS_NOT_FOUND, "%s: there is no such %s", store->path, what);
}

enum status sqlite_find(struct sqlite_store *store, const char *sql, const char *id,
                        const char *what, sqlite3_stmt **row, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, id);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (!found) {
        (void)sqlite3_reset(statement);
        return sqlite_no_change(store, false, what, error);
    }
    *row = statement;
    return STATUS_OK;
}
