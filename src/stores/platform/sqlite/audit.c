/*
 * The questions of an audit to SQLite itself: whether the file is what SQLite left, and whether the
 * rows of the ledger and of its players have their counterparts. The chains are the caller's to
 * follow (ledger/audit.c).
 */
#include <string.h>

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids.h"

/* ---- the file -------------------------------------------------------------------------------- */

#define CACHE_KIBIBYTES "16384"
enum status sqlite_ledger_integrity(struct platform_store *base, const char **how,
                                    struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    *how = "SQLite's own integrity check";
    store->work = "checking the store itself";
    progress_tell(base->watch, store->work, 0, 0);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK) /* an audit goes back and forth between tables and indexes */
        status = sqlite_execute(store, "PRAGMA cache_size = -" CACHE_KIBIBYTES, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, "PRAGMA integrity_check(1)", &statement, error);
    if (status == STATUS_OK)
        status = sqlite_first(store, statement, &found, error);
    store->work = NULL;
    if (status != STATUS_OK)
        return status;
    const char *verdict = found ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (verdict == NULL || strcmp(verdict, "ok") != 0)
        status = error_set(error, STATUS_MALFORMED, "%s: is damaged, says SQLite itself: %.200s",
                           store->path, verdict != NULL ? verdict : "no verdict");
    (void)sqlite3_reset(statement);
    return status;
}

/* ---- counterparts ---------------------------------------------------------------------------- */

enum status sqlite_ledger_counterparts(struct platform_store *base, struct error *error)
{
    enum status status = ledger_run_checks(base, error);
    return status == STATUS_OK ? sqlite_ids_audit(sqlite_store_of(base), error) : status;
}
