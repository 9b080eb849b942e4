/*
 * The questions of an audit to PostgreSQL itself: whether indexes and tables are sound. The rows
 * are the caller's to compare (ledger/audit.c).
 *
 * Whether an index leads to all of its table, amcheck knows: an extension that the database's owner
 * makes and whose functions this user has to be given. Without it each index is read from end to
 * end and compared with its table, which misses a damaged inner page.
 */
#include "stores/platform/postgres/postgres.h"

#include <stdio.h>

#include "base/memory.h"

/* ---- indexes and tables ---------------------------------------------------------------------- */

#define TABLES                                                                               \
    "('customer'::regclass, 'currency'::regclass, 'player'::regclass,"                       \
    " 'player_opened'::regclass, 'ledger_transaction'::regclass,"                            \
    " 'ledger_rollback'::regclass, 'ledger_decline'::regclass, 'ledger_declined'::regclass," \
    " 'ledger_account'::regclass, 'ledger_clearing'::regclass)"

/* The indexes, those of kind BRIN, which amcheck does not know, and the tables. */
#define INDEXES_WHERE(kind)                                                                    \
    "SELECT index.indexrelid::bigint, index.indexrelid::regclass::text FROM pg_index AS index" \
    " JOIN pg_class ON pg_class.oid = index.indexrelid"                                        \
    " JOIN pg_am ON pg_am.oid = pg_class.relam AND pg_am.amname " kind                         \
    " WHERE index.indrelid IN " TABLES " ORDER BY 1"
static const char list_indexes[] = INDEXES_WHERE("<> 'brin'");
static const char list_brin_indexes[] = INDEXES_WHERE("= 'brin'");
static const char list_tables[] = "SELECT pg_class.oid::bigint, pg_class.oid::regclass::text"
                                  " FROM pg_class WHERE pg_class.oid IN " TABLES " ORDER BY 1";

static const char may_use_amcheck[] =
    "SELECT ((SELECT count(DISTINCT function.proname) FROM pg_extension AS extension"
    " JOIN pg_proc AS function ON function.pronamespace = extension.extnamespace"
    " WHERE extension.extname = 'amcheck'"
    " AND (function.proname = 'bt_index_check' AND function.pronargs = 2"
    "  OR function.proname = 'verify_heapam')"
    " AND pg_function_is_visible(function.oid)"
    " AND has_function_privilege(function.oid, 'EXECUTE')) = 2)::int";

/* Each raises an error, or returns no row, when it is sound. */
static const char check_index[] = "SELECT 1 FROM (SELECT bt_index_check($1::bigint::oid::regclass, "
                                  "true)::text AS answer OFFSET 0)"
                                  " AS done WHERE answer IS NULL";
static const char check_table[] =
    "SELECT 1 FROM verify_heapam($1::bigint::oid::regclass, true) LIMIT 1";
static const char compare_index[] = "SELECT 1 WHERE NOT index_has_its_table($1::bigint::oid)";
static const char compare_brin[] = "SELECT 1 WHERE NOT brin_has_its_table($1::bigint::oid)";

struct relations {
    size_t count;
    struct relation {
        int64_t id;
        char name[160];
    } * at;
};

static bool on_relation(void *context, const struct sql_row *row)
{
    struct relations *relations = context;
    struct text name = sql_text(row, 1);
    relations->at = memory_resize(relations->at, (relations->count + 1) * sizeof relations->at[0]);
    struct relation *relation = &relations->at[relations->count++];
    relation->id = sql_integer(row, 0);
    (void)snprintf(relation->name, sizeof relation->name, "%.*s", (int)name.size, name.at);
    return true;
}

/* Asks `sql` of each relation that `list` names. */
static enum status check_each(struct postgres_store *store, const char *list, const char *sql,
                              struct error *error)
{
    struct relations relations = {.count = 0};
    struct sql_query listing = {.sql = list, .row = on_relation, .context = &relations};
    enum status status = postgres_read_snapshot(store, &listing, 1, error);
    for (size_t i = 0; i < relations.count && status == STATUS_OK; i++) {
        const char *name = relations.at[i].name;
        struct sql_parameters parameters = {0};
        struct sql_query query = {.sql = sql, .parameters = &parameters};
        progress_tell(store->base.watch, "checking the store itself", 0, 0);
        SQL_ADD(&parameters, SQL_INTEGER(relations.at[i].id));
        status = postgres_read_snapshot(store, &query, 1, error);
        if (status == STATUS_OK && query.rows > 0)
            status = error_set(error, STATUS_MALFORMED,
                               "%s: %s is damaged; restore a backup, or REINDEX if it is an index",
                               store->location, name);
        else if (status == STATUS_MALFORMED)
            error_prefix(error, "%s", name);
    }
    memory_free(relations.at);
    return status;
}

enum status postgres_ledger_integrity(struct platform_store *base, const char **how,
                                      struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    int64_t amcheck = 0;
    struct sql_query query = {.sql = may_use_amcheck, .row = sql_take_integer, .context = &amcheck};
    enum status status = postgres_read_snapshot(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    *how = amcheck > 0
               ? "amcheck"
               : "comparing each index with its table (the extension amcheck would check more)";
    status = check_each(store, list_indexes, amcheck > 0 ? check_index : compare_index, error);
    if (status == STATUS_OK)
        status = check_each(store, list_brin_indexes, compare_brin, error);
    if (status == STATUS_OK && amcheck > 0)
        status = check_each(store, list_tables, check_table, error);
    return status;
}
