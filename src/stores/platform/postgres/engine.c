/*
 * The platform store in PostgreSQL: opening, migrating, and the engine's verbs.
 */
#include "stores/platform/postgres/postgres.h"

#include "base/memory.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform/schema.h"

/* ---- opening --------------------------------------------------------------------------------- */

static void postgres_close(struct platform_store *base)
{
    struct postgres_store *store = postgres_store_of(base);
    postgres_disconnect(store);
    postgres_target_destroy(&store->target);
    postgres_ledger_forget(store);
    memory_free(store);
}

static enum status postgres_open(struct platform_store **store,
                                 const struct platform_store_options *options, struct error *error)
{
    struct postgres_target *target = NULL;
    enum status status = postgres_target_create(&target, options->uri, options->timeout_ms, error);
    if (status != STATUS_OK)
        return status;
    struct postgres_store *made = memory_alloc_zeroed(1, sizeof *made);
    made->base.engine = &platform_postgres_engine;
    made->magic = POSTGRES_STORE_MAGIC;
    made->target = target;
    made->location = target->location;
    made->base.location = target->location;
    made->timeout_ms = options->timeout_ms;
    made->only = options->host;
    made->create = options->create;
    made->log = options->log;
    made->facts = options->facts != NULL ? options->facts : &made->own;
    atomic_init(&made->own.unsafe, true); /* logs nothing */
    made->doubtful = true;
    postgres_renew(made);
    status = postgres_connect_any(made, options->create, error);
    if (status != STATUS_OK) {
        postgres_close(&made->base);
        return status;
    }
    *store = &made->base;
    return STATUS_OK;
}

/* ---- migrating ------------------------------------------------------------------------------- */

static enum status read_applied(struct postgres_store *store, uint32_t *version,
                                struct error *error)
{
    struct schema schema = {postgres_migrations, postgres_migration_count, 0, false};
    struct sql_query query = {.sql = schema_read, .row = schema_on_row, .context = &schema};
    enum status status = postgres_run(store, &query, 1, error);
    return status == STATUS_OK ? schema_check(&store->base, &schema, false, version, error)
                               : status;
}

/* The version, of a database that may have nothing of ours in it yet. */
static enum status read_version(struct postgres_store *store, uint32_t *version,
                                struct error *error)
{
    int64_t tables = 0; /* -1: there is no place for any */
    struct sql_query query = {
        .sql = postgres_texts.has_schema, .row = sql_take_integer, .context = &tables};
    enum status status = postgres_run(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (tables < 0)
        return error_invalid(
            error, "%s: no schema of the search_path is there, or may be used by this user",
            store->location);
    if (tables > 0)
        return read_applied(store, version, error);
    *version = 0;
    return STATUS_OK;
}

/* Applies the next migration if there is one. Looks at the version under the lock: another process
 * may have been quicker. (And by reading the table: whether there is one, a session may know from
 * before.) */
static enum status migrate_step(struct postgres_store *store, uint32_t *version,
                                struct error *error)
{
    struct sql_query queries[] = {{.sql = postgres_begin},
                                  {.sql = postgres_texts.no_timeout},
                                  {.sql = "SET LOCAL lock_timeout = 60000"},
                                  {.sql = postgres_texts.lock_schema}};
    enum status status = postgres_run(store, queries, 4, error);
    if (status == STATUS_OK)
        status = postgres_execute(store, postgres_texts.make_schema, error);
    if (status == STATUS_OK)
        status = read_applied(store, version, error);
    const struct migration *next =
        schema_next(postgres_migrations, postgres_migration_count, *version);
    if (status == STATUS_OK && next != NULL) {
        status = postgres_execute(store, next->sql, error);
        if (status == STATUS_OK)
            status = schema_record(&store->base, next, error);
        if (status != STATUS_OK)
            error_prefix(error, "migration %u (%s)", next->number, next->name);
        *version = next->number;
    }
    return postgres_end(store, status, error);
}

/* Connects, also to a database that has nothing of ours in it yet. */
static enum status ready_to_migrate(struct postgres_store *store, struct error *error)
{
    CHECK(!store->snapshot);
    postgres_forget_outcome(store);
    store->patient = false;
    postgres_renew(store);
    if (store->connection != NULL && !postgres_is_alive(store))
        postgres_disconnect(store);
    return store->connection == NULL ? postgres_connect_any(store, true, error) : STATUS_OK;
}

static enum status postgres_schema(struct platform_store *base, uint32_t *version, uint32_t *newest,
                                   struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    *newest = postgres_migrations[postgres_migration_count - 1].number;
    enum status status = ready_to_migrate(store, error);
    return status == STATUS_OK ? read_version(store, version, error) : status;
}

static enum status postgres_migrate(struct platform_store *base, uint32_t *version,
                                    struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    enum status status = ready_to_migrate(store, error);
    if (status != STATUS_OK)
        return status;
    store->patient = true;
    postgres_renew(store);
    return migrate_step(store, version, error);
}

static bool take_name(void *context, const struct sql_row *row)
{
    buffer_append_text(context, sql_text(row, 0));
    return true;
}

static enum status ask_name(struct postgres_store *store, const char *sql, const char *parameter,
                            struct buffer *name, struct error *error)
{
    struct sql_parameters parameters = {0};
    struct sql_query query = {
        .sql = sql, .parameters = &parameters, .row = take_name, .context = name};
    if (parameter != NULL)
        SQL_ADD(&parameters, SQL_STRING(parameter));
    return postgres_run(store, &query, 1, error);
}

/* Makes everything once more in a schema that the transaction's end takes away again. */
static enum status make_shape(struct postgres_store *store, struct error *error)
{
    enum status status = postgres_execute(
        store, "CREATE SCHEMA croupier_shape; SET LOCAL search_path = croupier_shape", error);
    for (size_t i = 0; i < postgres_migration_count && status == STATUS_OK; i++)
        status = postgres_execute(store, postgres_migrations[i].sql, error);
    return status;
}

static enum status postgres_check_shape(struct platform_store *base, bool *compared,
                                        struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct buffer schema = {0}, name = {0};
    struct sql_query queries[] = {{.sql = postgres_begin}, {.sql = postgres_texts.no_timeout}};
    enum status status = ready_to_migrate(store, error);
    store->patient = true;
    postgres_renew(store);
    if (status == STATUS_OK)
        status = postgres_run(store, queries, 2, error);
    if (status == STATUS_OK)
        status = ask_name(store, postgres_texts.schema, NULL, &schema, error);
    *compared = schema.size > 0;
    if (status == STATUS_OK && *compared)
        status = make_shape(store, error);
    if (status == STATUS_OK && *compared)
        status = ask_name(store, postgres_texts.difference, buffer_string(&schema), &name, error);
    if (status == STATUS_OK)
        status = postgres_execute(store, "ROLLBACK; BEGIN", error);
    if (status == STATUS_OK && name.size > 0)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: the %s is not as croupier makes it; make it again as sql/ has it",
                           store->base.location, buffer_string(&name));
    status = postgres_end(store, status, error);
    buffer_free(&schema);
    buffer_free(&name);
    return status;
}

static const struct ledger_verbs postgres_ledger = {
    .waits = true,
    .keys_refuse = true,
    .begin = postgres_ledger_begin,
    .commit = postgres_ledger_commit,
    .recover = postgres_ledger_recover,
    .balances = postgres_ledger_balances,
    .id = postgres_ledger_id,
    .integrity = postgres_ledger_integrity,
    .counterparts = ledger_run_checks,
    .advance = postgres_ledger_advance,
    .snapshot_begin = postgres_snapshot_begin,
    .snapshot_end = postgres_snapshot_end,
};

const struct platform_engine platform_postgres_engine = {
    .scheme = "postgresql:",
    .alias = "postgres:",
    .open = postgres_open,
    .close = postgres_close,
    .schema = postgres_schema,
    .check_shape = postgres_check_shape,
    .size = "SELECT pg_database_size(current_database())",
    .migrate = postgres_migrate,
    .sql = &postgres_sql,
    .ledger = &postgres_ledger,
    .texts = &postgres_texts,
};
