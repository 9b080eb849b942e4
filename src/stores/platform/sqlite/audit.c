/*
 * The questions of an audit to SQLite itself: whether the file is what SQLite left, and whether the
 * rows of the ledger and of its players have their counterparts. The chains are the caller's to
 * follow (ledger/audit.c).
 */

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids.h"

/* ---- the file -------------------------------------------------------------------------------- */

enum status sqlite_ask_soundness(struct sqlite_store *store, const char *question, const char *work,
                                 const char *before, const char *after, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    store->work = work;
    enum status status = sqlite_find(store, question, NULL, &statement, &found, error);
    store->work = NULL;
    if (status != STATUS_OK)
        return status;
    const char *verdict = found ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (verdict == NULL || strcmp(verdict, "ok") != 0)
        status = error_set(error, STATUS_MALFORMED, "%s: is damaged%s%.200s%s", store->path, before,
                           verdict != NULL ? verdict : "no verdict", after);
    (void)sqlite3_reset(statement);
    return status;
}

#define CACHE_KIBIBYTES "16384"
enum status sqlite_ledger_integrity(struct platform_store *base, const char **how,
                                    struct error *error)
{
    static const char work[] = "checking the store itself";
    struct sqlite_store *store = sqlite_store_of(base);
    *how = "SQLite's own integrity check";
    progress_tell(base->watch, work, 0, 0);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK) /* an audit goes back and forth between tables and indexes */
        status = sqlite_execute(store, "PRAGMA cache_size = -" CACHE_KIBIBYTES, error);
    return status == STATUS_OK ? sqlite_ask_soundness(store, "PRAGMA integrity_check(1)", work,
                                                      ", says SQLite itself: ", "", error)
                               : status;
}

/* ---- counterparts ---------------------------------------------------------------------------- */

enum status sqlite_ledger_counterparts(struct platform_store *base, struct error *error)
{
    enum status status = ledger_run_checks(base, error);
    return status == STATUS_OK ? sqlite_ids_audit(sqlite_store_of(base), error) : status;
}
