/*
 * The platform store in one SQLite file: opening, migrating, and the engine's verbs.
 */
#include <pthread.h>

#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/schema.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/sqlite.h"
#include "stores/platform/texts.h"

/* ---- opening --------------------------------------------------------------------------------- */

static void sqlite_close(struct platform_store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite_disconnect(store);
    memory_free(store->path);
    memory_free(store);
}

/* SQLite's count of all memory in use is of no use here, and a lock around every allocation of
 * every thread. It can be given up only before SQLite is used for the first time. */
static void count_no_memory(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static enum status sqlite_open(struct platform_store **store,
                               const struct platform_store_options *options, struct error *error)
{
    const char *path = options->uri + strlen(platform_sqlite_engine.scheme);
    if (path[0] == '\0')
        return error_invalid(error, "platform store: sqlite: needs a file; write "
                                    "sqlite:/var/lib/croupier/platform.db");
    static pthread_once_t first_time = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&first_time, count_no_memory) == 0);
    struct buffer literal = {0}; /* SQLite gives ":memory:" a meaning; for us it is a file's name */
    if (path[0] == ':')
        buffer_append_string(&literal, "./");
    buffer_append_string(&literal, path);
    struct sqlite_store *made = memory_alloc_zeroed(1, sizeof *made);
    made->base.engine = &platform_sqlite_engine;
    made->magic = SQLITE_STORE_MAGIC;
    made->mark = -1;
    made->add_functions = sqlite_ids_register;
    made->path = file_follow_link(buffer_string(&literal));
    made->base.location = made->path;
    made->timeout_ms = options->timeout_ms;
    made->log = options->log;
    made->facts = options->facts;
    made->reads = options->reads;
    made->any_file = options->any_file;
    made->gives_way = options->gives_way;
    buffer_free(&literal);
    enum status status = sqlite_connect(made, options->create, error);
    if (status != STATUS_OK) {
        sqlite_close(&made->base);
        return status;
    }
    *store = &made->base;
    return STATUS_OK;
}

/* ---- migrating ------------------------------------------------------------------------------- */

/* The version, of a store that may have nothing in it yet. */
static enum status read_version_or_none(struct sqlite_store *store, uint32_t *version,
                                        struct error *error)
{
    int64_t tables = 0;
    enum status status =
        sqlite_number(store, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_migration'",
                      &tables, error);
    if (status != STATUS_OK)
        return status;
    if (tables > 0)
        return sqlite_check_schema(store, false, version, error);
    *version = 0;
    return STATUS_OK;
}

/* ledger_chain(previous, record): the SHA-256 of both, for the declines that 0.1.0 did not chain.
 * NULL where the record is: then a row is malformed, and no table takes it. */
static void chain(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint8_t hash[DIGEST_SIZE];
    const char *record = (const char *)sqlite3_value_text(values[1]);
    CHECK(count == 2);
    if (record == NULL)
        return;
    struct digest *digest = digest_begin();
    digest_add(digest, sqlite3_value_blob(values[0]), (size_t)sqlite3_value_bytes(values[0]));
    digest_add(digest, record, (size_t)sqlite3_value_bytes(values[1]));
    digest_end(&digest, hash);
    sqlite3_result_blob(context, hash, sizeof hash, SQLITE_TRANSIENT);
}

/* Innocuous: a trigger of the migration calls it. */
static void add_chain(sqlite3 *database)
{
    CHECK(sqlite3_create_function(database, "ledger_chain", 2,
                                  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                  chain, NULL, NULL) == SQLITE_OK);
}

static enum status apply(struct sqlite_store *store, const struct migration *migration,
                         struct error *error)
{
    char work[64];
    (void)snprintf(work, sizeof work, "schema %u (%s)", migration->number, migration->name);
    log_event(store->log, LOG_INFO, "migrating", LOG_INTEGER("schema", migration->number),
              LOG_STRING("name", migration->name));
    store->work = work;
    enum status status = sqlite_execute(store, migration->sql, error);
    store->work = NULL;
    if (status == STATUS_OK)
        status = schema_record(&store->base, migration, error);
    if (status == STATUS_INVALID || status == STATUS_NOT_FOUND)
        error_prefix(error,
                     "what is stored does not fit together, and nothing was changed; find out with "
                     "the former version's `croupier wallet verify`, or restore a backup");
    if (status != STATUS_OK)
        error_prefix(error, "migration %u (%s)", migration->number, migration->name);
    return status;
}

/* Applies the next migration if there is one, in a transaction of its own. Looks at the version
 * inside it: another process may have been quicker. */
static enum status migrate_step(struct sqlite_store *store, uint32_t *version, struct error *error)
{
    enum status status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    status = read_version_or_none(store, version, error);
    if (status == STATUS_OK && *version == 0)
        status = sqlite_execute(store, sqlite_texts.make_schema, error);
    const struct migration *next = schema_next(sqlite_migrations, sqlite_migration_count, *version);
    if (status == STATUS_OK && next != NULL) {
        status = apply(store, next, error);
        *version = next->number;
    }
    return sqlite_end(store, status, error);
}

/* Is a store sound that has something in it and is about to be changed? */
static enum status check_soundness(struct sqlite_store *store, struct error *error)
{
    return sqlite_ask_soundness(store, "PRAGMA quick_check(1)", "looking whether the file is sound",
                                " (", "); nothing was changed; restore a backup first", error);
}

/* The connection is there, also to a file that has nothing in it. */
static enum status ready_to_migrate(struct sqlite_store *store, struct error *error)
{
    struct stat facts;
    if (store->database != NULL && !store->failed) /* on a read-only mount no name is watched */
        return store->immutable ? STATUS_OK : sqlite_check_names(store, &facts, error);
    sqlite_disconnect(store);
    return sqlite_connect(store, true, error);
}

static enum status sqlite_schema(struct platform_store *base, uint32_t *version, uint32_t *newest,
                                 struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    *newest = sqlite_migrations[sqlite_migration_count - 1].number;
    enum status status = ready_to_migrate(store, error);
    return status == STATUS_OK ? read_version_or_none(store, version, error) : status;
}

static enum status sqlite_back_up(struct platform_store *base, const char *to, char **path,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    uint32_t version = 0;
    enum status status = ready_to_migrate(store, error);
    if (status == STATUS_OK)
        status = read_version_or_none(store, &version, error);
    if (status == STATUS_OK)
        status = check_soundness(store, error);
    if (status != STATUS_OK)
        return status;
    store->sound = true;
    return to != NULL ? sqlite_copy_to(store, to, error)
                      : sqlite_copy_beside(store, version, path, error);
}

static enum status sqlite_migrate(struct platform_store *base, uint32_t *version,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = ready_to_migrate(store, error);
    if (status == STATUS_OK && *version > 0 && !store->sound)
        status = check_soundness(store, error);
    if (status != STATUS_OK)
        return status;
    store->sound = true;
    add_chain(store->database);
    /* A sort, or the undo data of a statement, may need more than memory holds. */
    status = sqlite_execute(store, "PRAGMA temp_store=FILE", error);
    if (status == STATUS_OK)
        status = migrate_step(store, version, error);
    return status == STATUS_OK ? sqlite_execute(store, "PRAGMA temp_store=MEMORY", error) : status;
}

#define MADE_BY_HAND "; restore a backup, or make it again as sql/ has it"

static enum status compare_shape(struct sqlite_store *store, sqlite3 *made, struct error *error)
{
    sqlite3_stmt *shape = NULL, *difference = NULL;
    bool found = false;
    CHECK(sqlite3_prepare_v2(made, sqlite_texts.shape, -1, &shape, NULL) == SQLITE_OK &&
          sqlite3_step(shape) == SQLITE_ROW);
    enum status status = sqlite_find(store, sqlite_texts.difference, &SQL_TEXT(read_text(shape, 0)),
                                     &difference, &found, error);
    if (found)
        status = error_set(error, STATUS_MALFORMED, "%s: the %s %s" MADE_BY_HAND, store->path,
                           (const char *)sqlite3_column_text(difference, 0),
                           (const char *)sqlite3_column_text(difference, 1));
    if (difference != NULL)
        (void)sqlite3_reset(difference);
    (void)sqlite3_finalize(shape);
    return status;
}

static enum status sqlite_check_shape(struct platform_store *base, bool *compared,
                                      struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3 *made = NULL;
    enum status status = sqlite_ready(store, error);
    *compared = true;
    if (status != STATUS_OK)
        return status;
    CHECK(sqlite3_open(":memory:", &made) == SQLITE_OK);
    add_chain(made);
    CHECK(sqlite3_exec(made, sqlite_texts.make_schema, NULL, NULL, NULL) == SQLITE_OK);
    for (size_t i = 0; i < sqlite_migration_count; i++)
        CHECK(sqlite3_exec(made, sqlite_migrations[i].sql, NULL, NULL, NULL) == SQLITE_OK);
    status = compare_shape(store, made, error);
    CHECK(sqlite3_close(made) == SQLITE_OK);
    return status;
}

static const struct ledger_verbs sqlite_ledger = {
    .begin = sqlite_ledger_begin,
    .commit = sqlite_ledger_commit,
    .recover = sqlite_ledger_recover,
    .prepare = sqlite_ledger_prepare,
    .balances = sqlite_ledger_balances,
    .id = sqlite_ledger_id,
    .integrity = sqlite_ledger_integrity,
    .counterparts = sqlite_ledger_counterparts,
    .wants_upkeep = sqlite_ledger_wants_upkeep,
    .upkeep = sqlite_ledger_upkeep,
    .index_facts = sqlite_ledger_index_facts,
    .check_end = sqlite_ledger_check_end,
    .accept_end = sqlite_ledger_accept_end,
    .snapshot_begin = sqlite_snapshot_begin,
    .snapshot_end = sqlite_snapshot_end,
};

const struct platform_engine platform_sqlite_engine = {
    .scheme = "sqlite:",
    .open = sqlite_open,
    .close = sqlite_close,
    .schema = sqlite_schema,
    .check_shape = sqlite_check_shape,
    .size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    .back_up = sqlite_back_up,
    .migrate = sqlite_migrate,
    .sql = &sqlite_sql,
    .ledger = &sqlite_ledger,
    .texts = &sqlite_texts,
    .player_of = sqlite_player_of,
};
