/*
 * The questions of an audit to PostgreSQL itself: whether indexes and tables are sound. The rows
 * are the caller's to compare (ledger/audit.c).
 *
 * Whether an index leads to all of its table, amcheck knows: an extension that the database's owner
 * makes and whose functions this user has to be given. Without it each index is read from end to
 * end and compared with its table, which misses a damaged inner page.
 */
#include "stores/platform/postgres/postgres.h"

#include "base/memory.h"
#include "stores/platform/texts.h"

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
    const struct sql_texts *texts = &postgres_texts;
    int64_t amcheck = 0;
    struct sql_query query = {
        .sql = texts->may_use_amcheck, .row = sql_take_integer, .context = &amcheck};
    enum status status = postgres_read_snapshot(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    *how = amcheck > 0
               ? "amcheck"
               : "comparing each index with its table (the extension amcheck would check more)";
    status = check_each(store, texts->indexes,
                        amcheck > 0 ? texts->check_index : texts->compare_index, error);
    if (status == STATUS_OK)
        status = check_each(store, texts->brin_indexes, texts->compare_brin, error);
    if (status == STATUS_OK && amcheck > 0)
        status = check_each(store, texts->tables, texts->check_table, error);
    return status;
}
