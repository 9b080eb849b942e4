/* Opening the platform store: chooses the engine by the URI's scheme; see platform.h. */

#include "stores/platform/engine.h"
#include "stores/platform/texts.h"

#include "stores/platform_changes.h"

static const struct platform_engine *const engines[] = {
    &platform_sqlite_engine,
    &platform_postgres_engine,
};

enum status platform_store_open(struct platform_store **store,
                                const struct platform_store_options *options, struct error *error)
{
    struct text uri = text_of(options->uri);
    if (*store != NULL)
        return STATUS_OK;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        const struct platform_engine *engine = engines[i];
        if (!text_starts_with(uri, text_of(engine->scheme)) &&
            (engine->alias == NULL || !text_starts_with(uri, text_of(engine->alias))))
            continue;
        enum status status = engine->open(store, options, error);
        if (status != STATUS_OK)
            return status;
        (*store)->ledger = engine->ledger;
        platform_store_act_as(*store, "unknown", "");
        return STATUS_OK;
    }
    /* This is not the URI itself, which may carry a password. */
    return error_invalid(error, "platform store: unknown kind of store; write sqlite:FILE or "
                                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
}

void platform_store_act_as(struct platform_store *store, const char *who, const char *command)
{
    struct author *author = &store->author;
    CHECK(strlen(who) < sizeof author->who && strlen(command) < sizeof author->command);
    *author = (struct author){.who = ""};
    memcpy(author->who, who, strlen(who));
    memcpy(author->command, command, strlen(command));
}

void platform_store_close(struct platform_store **store)
{
    if (*store == NULL)
        return;
    statements_destroy(&(*store)->statements);
    (*store)->engine->close(*store);
    *store = NULL;
}

enum status platform_store_schema(struct platform_store *store, struct platform_schema *schema,
                                  struct error *error)
{
    struct platform_schema found = {.can_back_up = store->engine->back_up != NULL};
    enum status status = store->engine->schema(store, &found.version, &found.newest, error);
    if (status == STATUS_OK)
        *schema = found;
    return status;
}

enum status platform_store_check_shape(struct platform_store *store, bool *compared,
                                       struct error *error)
{
    return store->engine->check_shape(store, compared, error);
}

enum status platform_store_back_up(struct platform_store *store, const char *to, char **path,
                                   struct error *error)
{
    if (store->engine->back_up == NULL)
        return error_invalid(error, "%s: is a server, whose own tools make backups",
                             store->location);
    return store->engine->back_up(store, to, path, error);
}

enum status platform_store_migrate(struct platform_store *store, uint32_t *before, uint32_t *after,
                                   struct error *error)
{
    uint32_t first = 0;
    uint32_t newest = 0;
    enum status status = store->engine->schema(store, &first, &newest, error);
    uint32_t version = first;
    /* Without a step that is due, no right to make tables is needed. */
    while (status == STATUS_OK && version < newest)
        status = store->engine->migrate(store, &version, error);
    if (status != STATUS_OK)
        return status;
    *before = first;
    *after = version;
    return STATUS_OK;
}

enum status platform_store_ping(struct platform_store *store, struct error *error)
{
    uint64_t revision;
    return platform_revision(store, &revision, error);
}

enum status platform_store_size(struct platform_store *store, int64_t *bytes, struct error *error)
{
    return sql_read_integer(store, store->engine->size, bytes, error);
}

static bool take_reason(void *context, const struct sql_row *row)
{
    (void)text_copy_plain(sql_text(row, 0), context, ERROR_TEXT_SIZE);
    return false;
}

enum status platform_store_check_writes(struct platform_store *store, struct error *error)
{
    char reason[ERROR_TEXT_SIZE] = "";
    struct sql_query query = {
        .sql = store->engine->texts->refuses_changes, .row = take_reason, .context = reason};
    enum status status =
        query.sql == NULL ? STATUS_OK : store->engine->sql->read(store, &query, 1, error);
    return status != STATUS_OK || reason[0] == '\0'
               ? status
               : error_set(error, STATUS_READ_ONLY, "%s: %s", store->location, reason);
}

/* ---- metrics --------------------------------------------------------------------------------- */

const struct metric platform_metrics[] = {
    METRIC_FACT("croupier_platform_round_trips_total", struct platform_facts, round_trips),
    METRIC_SECONDS("croupier_platform_wait_seconds_total", struct platform_facts, round_trip_ns),
    METRIC_FACT("croupier_platform_connections", struct platform_facts, connections),
    METRIC_FACT("croupier_platform_connects_total", struct platform_facts, connects),
    METRIC_FACT("croupier_platform_repeats_total", struct platform_facts, repeats),
    METRIC_FACT("croupier_platform_timeouts_total", struct platform_facts, timeouts),
    METRIC_FACT("croupier_platform_read_only", struct platform_facts, read_only),
    METRIC_FACT("croupier_platform_log_held_bytes", struct platform_facts, log_held_bytes),
    {0},
};
