/*
 * What an audit of the ledger asks SQLite itself: whether the file is what SQLite left, and whether
 * the rows of the ledger and of its players have their counterparts. The chains are the caller's to
 * follow (stores/platform/ledger/audit.c); here each row is compared with the others that say the same:
 * those of the ledger itself in one pass (rows_audit.c).
 *
 * Each check is a statement that names the first row that does not fit, and finds none in a sound
 * ledger.
 */
#include <string.h>

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids_audit.h"

/* ---- a hash in SQL --------------------------------------------------------------------------- */

#define HASH_PARAMETERS 14

static bool copy_value(sqlite3_value *value, char *out, size_t room)
{
    const char *at = (const char *)sqlite3_value_text(value);
    size_t size = at == NULL ? room : (size_t)sqlite3_value_bytes(value);
    if (size >= room)
        return false;
    memcpy(out, at, size + 1);
    return true;
}

static struct text text_of_value(sqlite3_value *value)
{
    const char *at = (const char *)sqlite3_value_text(value);
    return (struct text){at, at == NULL ? 0 : (size_t)sqlite3_value_bytes(value)};
}

/* ledger_decline_hash(previous, customer_id, player_id, position, transaction_id, operation,
 * outcome, currency, exponent, amount_minor, reference, game_id, round_id, created_ms): NULL where
 * a row is malformed, which no table takes for a hash. */
static void decline_hash(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct ledger_transaction decline = {
        .decline = (uint64_t)sqlite3_value_int64(values[3]),
        .currency_exponent = (uint8_t)sqlite3_value_int64(values[8]),
        .amount_minor = sqlite3_value_int64(values[9]),
        .created_ms = sqlite3_value_int64(values[13]),
    };
    uint8_t hash[LEDGER_HASH_SIZE];
    const uint8_t *previous = sqlite3_value_blob(values[0]);
    CHECK(count == HASH_PARAMETERS);
    bool sound = previous != NULL && sqlite3_value_bytes(values[0]) == LEDGER_HASH_SIZE;
    sound &= copy_value(values[1], decline.customer_id, sizeof decline.customer_id);
    sound &= copy_value(values[2], decline.player_id, sizeof decline.player_id);
    sound &= copy_value(values[4], decline.transaction_id, sizeof decline.transaction_id);
    sound &= ledger_operation_parse(text_of_value(values[5]), &decline.operation);
    sound &= ledger_outcome_parse(text_of_value(values[6]), &decline.outcome);
    sound &= copy_value(values[7], decline.currency, sizeof decline.currency);
    sound &= copy_value(values[10], decline.reference, sizeof decline.reference);
    sound &= copy_value(values[11], decline.game_id, sizeof decline.game_id);
    sound &= copy_value(values[12], decline.round_id, sizeof decline.round_id);
    if (!sound || ledger_is_entry(&decline) || decline.decline == 0)
        return;
    ledger_decline_hash(&decline, previous, hash);
    sqlite3_result_blob(context, hash, sizeof hash, SQLITE_TRANSIENT);
}

/* Innocuous: a trigger of the migration calls it, and it knows nothing but what it is given. */
void sqlite_audit_register(sqlite3 *database)
{
    CHECK(sqlite3_create_function(database, "ledger_decline_hash", HASH_PARAMETERS,
                                  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                  decline_hash, NULL, NULL) == SQLITE_OK);
}

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
    return status == STATUS_OK ? sqlite_rows_audit(sqlite_store_of(base), error) : status;
}
