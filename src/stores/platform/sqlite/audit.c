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
struct checking {
    const struct ledger_check *check;
    struct sqlite_store *store;
};

static int still_alive(void *context)
{
    const struct checking *checking = context;
    checking->check->alive(checking->check->context);
    return platform_store_is_stopped(&checking->store->base) ? 1 : 0;
}

enum status sqlite_ledger_integrity(struct platform_store *base, const struct ledger_check *check,
                                    const char **how, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct checking checking = {check, store};
    sqlite3_stmt *statement;
    bool found = false;
    *how = "SQLite's own integrity check";
    check->alive(check->context);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK) /* an audit goes back and forth between tables and indexes */
        status = sqlite_execute(store, "PRAGMA cache_size = -" CACHE_KIBIBYTES, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, "PRAGMA integrity_check(1)", &statement, error);
    sqlite3_progress_handler(store->database, SQLITE_STEPS, still_alive, &checking);
    if (status == STATUS_OK)
        status = sqlite_first(store, statement, &found, error);
    sqlite_heed_stop(store);
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
