/* Opening the platform store: chooses the engine by the URI's scheme; see platform.h. */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/engine.h"

static const struct platform_engine *const engines[] = {
    &platform_sqlite_engine,
    &platform_postgres_engine,
};

enum status platform_store_open(struct platform_store **store,
                                const struct platform_store_options *options, struct error *error)
{
    struct text uri = text_of(options->uri);
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        if (text_starts_with(uri, text_of(engines[i]->scheme)) ||
            (engines[i]->alias != NULL && text_starts_with(uri, text_of(engines[i]->alias))))
            return engines[i]->open(store, options, error);
    /* Not the URI itself: it may carry a password. */
    return error_set(error, STATUS_INVALID,
                     "platform store: unknown kind of store; write sqlite:FILE or "
                     "postgresql://USER:PASSWORD@HOST:PORT/DATABASE");
}

void platform_store_close(struct platform_store **store)
{
    if (*store == NULL)
        return;
    for (size_t i = 0; i < RECORD_KIND_COUNT; i++)
        for (size_t j = 0; j < STATEMENT_FORM_COUNT; j++)
            memory_free((*store)->statements[i][j]);
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

enum status platform_store_back_up(struct platform_store *store, char **path, struct error *error)
{
    if (store->engine->back_up == NULL)
        return error_set(error, STATUS_INVALID, "%s: is a server, whose own tools make backups",
                         store->place);
    return store->engine->back_up(store, path, error);
}

const char *platform_store_unsafe(const struct platform_store *store)
{
    return store->unsafe;
}

enum status platform_store_migrate(struct platform_store *store, uint32_t *before, uint32_t *after,
                                   struct error *error)
{
    return store->engine->migrate(store, before, after, error);
}

enum status platform_store_ping(struct platform_store *store, struct error *error)
{
    uint64_t revision;
    return platform_revision(store, &revision, error);
}

enum status platform_damaged(const struct platform_store *store, const char *what,
                             struct error *error)
{
    return error_set(error, STATUS_MALFORMED,
                     "%s: is damaged (%s); stop croupier and restore a backup", store->place, what);
}

enum status platform_ledger_begin(struct platform_store *store, struct ledger_batch *batch,
                                  struct error *error)
{
    return store->engine->ledger_begin(store, batch, error);
}

enum status platform_ledger_commit(struct platform_store *store, const struct ledger_batch *batch,
                                   bool *unknown, struct error *error)
{
    return store->engine->ledger_commit(store, batch, unknown, error);
}

enum status platform_ledger_recover(struct platform_store *store, struct error *error)
{
    return store->engine->ledger_recover(store, error);
}

enum status platform_ledger_balances(struct platform_store *store, struct ledger_place *places,
                                     size_t count, struct error *error)
{
    CHECK(count <= LEDGER_BATCH_MAX);
    return store->engine->ledger_balances(store, places, count, error);
}

enum status platform_ledger_balance(struct platform_store *store, const char *player_id,
                                    struct ledger_account *account, struct error *error)
{
    struct ledger_place place = {.found = false};
    if (strlen(player_id) >= sizeof place.player_id)
        return error_set(error, STATUS_NOT_FOUND, "there is no such player");
    memcpy(place.player_id, player_id, strlen(player_id) + 1);
    enum status status = store->engine->ledger_balances(store, &place, 1, error);
    if (status == STATUS_OK && !place.found)
        return error_set(error, STATUS_NOT_FOUND, "there is no such player");
    if (status == STATUS_OK)
        *account = place.account;
    return status;
}

enum status platform_ledger_id(struct platform_store *store, struct ledger_fact *fact,
                               struct error *error)
{
    return store->engine->ledger_id(store, fact, error);
}

enum status platform_ledger_entries(struct platform_store *store, const char *player_id,
                                    ledger_entry_visitor *visit, void *context, struct error *error)
{
    return store->engine->ledger_entries(store, player_id, visit, context, error);
}

enum status platform_ledger_transactions(struct platform_store *store,
                                         ledger_transaction_visitor *visit, void *context,
                                         struct error *error)
{
    return store->engine->ledger_transactions(store, visit, context, error);
}

enum status platform_ledger_entered(struct platform_store *store, int64_t from_ms, int64_t to_ms,
                                    ledger_transaction_visitor *visit, void *context,
                                    struct error *error)
{
    return store->engine->ledger_entered(store, from_ms, to_ms, visit, context, error);
}

enum status platform_ledger_clearings(struct platform_store *store, ledger_clearing_visitor *visit,
                                      void *context, struct error *error)
{
    return store->engine->ledger_clearings(store, visit, context, error);
}

enum status platform_ledger_declines(struct platform_store *store, ledger_entry_visitor *visit,
                                     void *context, struct error *error)
{
    return store->engine->ledger_declines(store, visit, context, error);
}

enum status platform_ledger_integrity(struct platform_store *store, const char **how,
                                      struct error *error)
{
    return store->engine->ledger_integrity(store, how, error);
}

enum status platform_ledger_counterparts(struct platform_store *store, struct error *error)
{
    return store->engine->ledger_counterparts(store, error);
}

enum status platform_ledger_count(struct platform_store *store, uint64_t *count,
                                  struct error *error)
{
    return store->engine->ledger_count(store, count, error);
}

bool platform_ledger_wants_upkeep(struct platform_store *store)
{
    return store->engine->ledger_wants_upkeep != NULL && store->engine->ledger_wants_upkeep(store);
}

enum status platform_ledger_upkeep(struct platform_store *store, struct error *error)
{
    return store->engine->ledger_upkeep != NULL ? store->engine->ledger_upkeep(store, error)
                                                : STATUS_OK;
}

enum status platform_snapshot_begin(struct platform_store *store, struct error *error)
{
    return store->engine->snapshot_begin(store, error);
}

void platform_snapshot_end(struct platform_store *store)
{
    store->engine->snapshot_end(store);
}
