/*
 * What an audit of the ledger asks PostgreSQL itself: whether indexes and tables are sound, and
 * whether the rows of the ledger and of its players have their counterparts. The chains are the
 * caller's to follow (operator/wallet_audit.c); here each row is compared with the others that say
 * the same.
 *
 * Whether an index leads to all of its table, amcheck knows: an extension that the database's owner
 * makes and whose functions this user has to be given. Without it each index is read from end to
 * end and compared with its table, which misses a damaged inner page.
 */
#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/postgres.h"

/* ---- indexes and tables ---------------------------------------------------------------------- */

#define STRING_(value) #value
#define STRING(value) STRING_(value)

#define TABLES                                                                               \
    "('customer'::regclass, 'currency'::regclass, 'player'::regclass,"                       \
    " 'player_opened'::regclass, 'ledger_transaction'::regclass,"                            \
    " 'ledger_rollback'::regclass, 'ledger_decline'::regclass, 'ledger_declined'::regclass," \
    " 'ledger_account'::regclass, 'ledger_clearing'::regclass)"

/* The indexes, then the tables. */
static const char list_indexes[] =
    "SELECT index.indexrelid::bigint, index.indexrelid::regclass::text FROM pg_index AS index"
    " WHERE index.indrelid IN " TABLES " ORDER BY 1";
static const char list_tables[] = "SELECT pg_class.oid::bigint, pg_class.oid::regclass::text"
                                  " FROM pg_class WHERE pg_class.oid IN " TABLES " ORDER BY 1";

static const char may_use_amcheck[] =
    "SELECT (SELECT count(DISTINCT function.proname) FROM pg_extension AS extension"
    " JOIN pg_proc AS function ON function.pronamespace = extension.extnamespace"
    " WHERE extension.extname = 'amcheck'"
    " AND (function.proname = 'bt_index_check' AND function.pronargs = 2"
    "  OR function.proname = 'verify_heapam')"
    " AND pg_function_is_visible(function.oid)"
    " AND has_function_privilege(function.oid, 'EXECUTE')) = 2";

/* Each raises an error, or returns no row, when it is sound. */
static const char check_index[] = "SELECT 1 FROM (SELECT bt_index_check($1::bigint::oid::regclass, "
                                  "true)::text AS answer OFFSET 0)"
                                  " AS done WHERE answer IS NULL";
static const char check_table[] =
    "SELECT 1 FROM verify_heapam($1::bigint::oid::regclass, true) LIMIT 1";
static const char compare_index[] = "SELECT 1 WHERE NOT index_has_its_table($1::bigint::oid)";

/* Asks `sql` of each relation that `list` names. */
static enum status check_each(struct postgres_store *store, const char *list, const char *sql,
                              const struct ledger_check *check, struct error *error)
{
    struct postgres_query relations = {.sql = list};
    enum status status = postgres_read_snapshot(store, &relations, 1, error);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < row_count(&relations) && status == STATUS_OK; i++) {
        const struct postgres_row row = row_at(&relations, i);
        check->alive(check->context);
        struct text name = row_text(&row, 1);
        struct postgres_parameters parameters = {0};
        struct postgres_query query = {.sql = sql, .parameters = &parameters};
        set_integer(&parameters, 1, row_integer(&row, 0));
        status = postgres_read_snapshot(store, &query, 1, error);
        if (status == STATUS_OK && row_count(&query) > 0)
            status =
                error_set(error, STATUS_MALFORMED,
                          "%s: %.*s is damaged; restore a backup, or REINDEX if it is an index",
                          store->location, (int)name.size, name.at);
        else if (status == STATUS_MALFORMED)
            error_prefix(error, "%.*s", (int)name.size, name.at);
        postgres_clear(&query, 1);
    }
    postgres_clear(&relations, 1);
    return status;
}

enum status postgres_ledger_integrity(struct platform_store *base, const struct ledger_check *check,
                                      const char **how, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_query query = {.sql = may_use_amcheck};
    enum status status = postgres_read_snapshot(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    const struct postgres_row row = row_at(&query, 0);
    bool amcheck = row_flag(&row, 0);
    postgres_clear(&query, 1);
    *how = amcheck ? "amcheck"
                   : "comparing each index with its table (the extension amcheck would check more)";
    status = check_each(store, list_indexes, amcheck ? check_index : compare_index, check, error);
    if (status == STATUS_OK && amcheck)
        status = check_each(store, list_tables, check_table, check, error);
    return status;
}

/* ---- counterparts ---------------------------------------------------------------------------- */

static const struct check {
    const char *what; /* is wrong with the row that `sql` names */
    const char *sql;
} checks[] = {
    {"it is not what was opened",
     "SELECT 'player ' || player.id FROM player"
     " LEFT JOIN player_opened AS opened ON opened.player_number = player.number"
     " LEFT JOIN currency ON currency.code = player.currency"
     " WHERE (opened.id, opened.customer_id, opened.reference, opened.currency, opened.exponent,"
     "  opened.created_ms) IS DISTINCT FROM (player.id, player.customer_id, player.reference,"
     "  player.currency, currency.exponent, player.created_ms) LIMIT 1"},
    {"it was opened and is not there",
     "SELECT 'player ' || opened.id FROM player_opened AS opened WHERE NOT EXISTS"
     " (SELECT FROM player WHERE player.number = opened.player_number) LIMIT 1"},
    {"it is not of its customer's player",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " LEFT JOIN player ON player.number = t.player_number"
     " LEFT JOIN customer ON customer.id = player.customer_id"
     " WHERE customer.number IS NULL"
     " OR (t.owner_number > 0 AND customer.number <> t.owner_number) LIMIT 1"},
    {"there is no such provider",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.owner_number <= 0 AND NOT EXISTS (SELECT FROM provider"
     "  WHERE provider.number = -t.owner_number) LIMIT 1"},
    {"its player has no account",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.sequence IS NOT NULL AND NOT EXISTS (SELECT FROM ledger_account AS account"
     "  WHERE account.player_number = t.player_number) LIMIT 1"},
    {"its account is not of its last entry",
     "SELECT 'player number ' || account.player_number FROM ledger_account AS account"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS last"
     "  WHERE last.player_number = account.player_number AND last.sequence = account.sequence)"
     " LIMIT 1"},
    {"it refers to no debit that it could settle",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.operation = 'CREDIT' AND t.outcome = 'applied' AND t.reference IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_transaction AS debit"
     "  WHERE debit.owner_number = t.owner_number AND debit.transaction_id = t.reference"
     "  AND debit.player_number = t.player_number AND debit.operation = 'DEBIT'"
     "  AND debit.outcome = 'applied' AND NOT debit.late) LIMIT 1"},
    {"it is not marked as having rolled back its reference",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.operation = 'ROLLBACK' AND t.sequence IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_rollback AS mark"
     "  WHERE mark.owner_number = t.owner_number AND mark.target_id = t.reference"
     "  AND mark.transaction_number = t.number) LIMIT 1"},
    {"it is marked as rolled back by what is not its ROLLBACK",
     "SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS undo"
     "  WHERE undo.number = mark.transaction_number AND undo.operation = 'ROLLBACK'"
     "  AND undo.sequence IS NOT NULL AND undo.owner_number = mark.owner_number"
     "  AND undo.player_number = mark.player_number AND undo.reference = mark.target_id) LIMIT 1"},
    {"it is rolled back and nothing holds its key",
     "SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS target"
     "  WHERE target.owner_number = mark.owner_number"
     "  AND target.transaction_id = mark.target_id AND target.player_number = mark.player_number"
     "  AND NOT target.late) LIMIT 1"},
    /* The key stands as far behind its ROLLBACK as a batch may be long, and is as old. */
    {"its key is held for no ROLLBACK",
     "SELECT 'transaction id ' || key.transaction_id FROM ledger_transaction AS key"
     " WHERE key.operation IS NULL AND NOT EXISTS (SELECT FROM ledger_rollback AS mark"
     "  JOIN ledger_transaction AS undo ON undo.number = mark.transaction_number"
     "  WHERE mark.owner_number = key.owner_number AND mark.target_id = key.transaction_id"
     "  AND mark.player_number = key.player_number AND undo.created_ms = key.created_ms"
     "  AND undo.number = key.number - " STRING(LEDGER_BATCH_MAX) " AND NOT key.late) LIMIT 1"},
    {"it is late for an id that nothing held",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.late AND NOT EXISTS (SELECT FROM ledger_transaction AS key"
     "  WHERE key.owner_number = t.owner_number AND key.transaction_id = t.transaction_id"
     "  AND key.operation IS NULL) LIMIT 1"},
    {"it is declined and not chained",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.sequence IS NULL AND t.operation IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_decline AS chained"
     "  WHERE chained.transaction_number = t.number AND chained.player_number = t.player_number)"
     " LIMIT 1"},
    {"it is chained as a decline and is none",
     "SELECT 'transaction number ' || chained.transaction_number FROM ledger_decline AS chained"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS t"
     "  WHERE t.number = chained.transaction_number AND t.player_number = chained.player_number"
     "  AND t.sequence IS NULL AND t.operation IS NOT NULL) LIMIT 1"},
    {"its declines have no chain",
     "SELECT 'player number ' || declined.player_number FROM ledger_declined AS declined"
     " WHERE NOT EXISTS (SELECT FROM ledger_decline AS last"
     "  WHERE last.player_number = declined.player_number AND last.position = declined.declines)"
     " LIMIT 1"},
    {"there is no such customer, or currency",
     "SELECT 'the clearing account of customer number ' || clearing.customer_number"
     " FROM ledger_clearing AS clearing WHERE NOT EXISTS (SELECT FROM customer"
     "  WHERE customer.number = clearing.customer_number) OR NOT EXISTS (SELECT FROM currency"
     "  WHERE currency.code = clearing.currency) LIMIT 1"},
};

enum status postgres_ledger_counterparts(struct platform_store *base, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && status == STATUS_OK; i++) {
        struct postgres_query query = {.sql = checks[i].sql};
        status = postgres_read_snapshot(store, &query, 1, error);
        if (status != STATUS_OK)
            return status;
        if (row_count(&query) > 0) {
            const struct postgres_row row = row_at(&query, 0);
            struct text name = row_text(&row, 0);
            if (!text_is_plain(name))
                name = TEXT("a row");
            status = error_set(error, STATUS_MALFORMED,
                               "the ledger is broken: rows are without their counterpart: %.*s: %s",
                               (int)name.size, name.at, checks[i].what);
        }
        postgres_clear(&query, 1);
    }
    return status;
}
