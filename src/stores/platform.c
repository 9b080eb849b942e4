/*
 * The front of the platform store: chooses the engine by the URI's scheme, and checks what callers
 * give before an engine sees it, so that no engine can be made to store what the others would refuse.
 */
#include <string.h>

#include "base/base62.h"
#include "base/clock.h"
#include "stores/platform_engine.h"
#include "stores/platform_record.h"

#define PLAYER_ID_START "ply_"
#define PLAYER_ID_RANDOM 16

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
    (*store)->engine->close(*store);
    *store = NULL;
}

enum status platform_store_migrate(struct platform_store *store, uint32_t *before, uint32_t *after,
                                   struct error *error)
{
    return store->engine->migrate(store, before, after, error);
}

enum status platform_store_ping(struct platform_store *store, struct error *error)
{
    return store->engine->ping(store, error);
}

enum status platform_customer_add(struct platform_store *store,
                                  const struct customer_record *record, struct error *error)
{
    enum status status = customer_record_check(record, error);
    return status == STATUS_OK ? store->engine->customer_add(store, record, error) : status;
}

enum status platform_customer_update(struct platform_store *store,
                                     const struct customer_record *record, struct error *error)
{
    enum status status = customer_record_check(record, error);
    return status == STATUS_OK ? store->engine->customer_update(store, record, error) : status;
}

enum status platform_customer_get(struct platform_store *store, const char *id,
                                  struct customer_record *record, struct error *error)
{
    return store->engine->customer_get(store, id, record, error);
}

enum status platform_customer_list(struct platform_store *store, customer_visitor *visit,
                                   void *context, struct error *error)
{
    return store->engine->customer_list(store, visit, context, error);
}

enum status platform_key_add(struct platform_store *store, const struct key_record *record,
                             struct error *error)
{
    enum status status = key_record_check(record, error);
    return status == STATUS_OK ? store->engine->key_add(store, record, error) : status;
}

enum status platform_key_revoke(struct platform_store *store, const char *key_id, int64_t now_ms,
                                struct error *error)
{
    CHECK(now_ms > 0);
    return store->engine->key_revoke(store, key_id, now_ms, error);
}

enum status platform_key_list(struct platform_store *store, const char *customer_id,
                              key_visitor *visit, void *context, struct error *error)
{
    return store->engine->key_list(store, customer_id, visit, context, error);
}

enum status platform_key_touch(struct platform_store *store, const struct key_use *uses,
                               size_t count, struct error *error)
{
    return count == 0 ? STATUS_OK : store->engine->key_touch(store, uses, count, error);
}

enum status platform_legacy_put(struct platform_store *store, const struct legacy_record *record,
                                struct error *error)
{
    enum status status = legacy_record_check(record, error);
    return status == STATUS_OK ? store->engine->legacy_put(store, record, error) : status;
}

enum status platform_legacy_get(struct platform_store *store, const struct address *address,
                                struct legacy_record *record, struct error *error)
{
    return store->engine->legacy_get(store, address, record, error);
}

enum status platform_legacy_list(struct platform_store *store, legacy_visitor *visit, void *context,
                                 struct error *error)
{
    return store->engine->legacy_list(store, visit, context, error);
}

static bool copy_field(char *field, size_t room, const char *value)
{
    size_t size = strlen(value);
    if (size >= room)
        return false;
    memcpy(field, value, size + 1);
    return true;
}

enum status platform_player_open(struct platform_store *store, const char *customer_id,
                                 const char *reference, const char *currency, uint8_t exponent,
                                 struct player_record *player, struct error *error)
{
    struct player_record wanted = {.currency_exponent = exponent, .created_ms = clock_wall_ms()};
    if (!copy_field(wanted.customer_id, sizeof wanted.customer_id, customer_id) ||
        !copy_field(wanted.reference, sizeof wanted.reference, reference) ||
        !copy_field(wanted.currency, sizeof wanted.currency, currency))
        return error_set(error, STATUS_INVALID, "player: a field is too long");
    memcpy(wanted.id, PLAYER_ID_START, sizeof PLAYER_ID_START - 1);
    base62_random(wanted.id + sizeof PLAYER_ID_START - 1, PLAYER_ID_RANDOM);
    enum status status = player_record_check(&wanted, error);
    return status == STATUS_OK ? store->engine->player_open(store, &wanted, player, error) : status;
}

enum status platform_player_get(struct platform_store *store, const char *player_id,
                                struct player_record *player, struct error *error)
{
    return store->engine->player_get(store, player_id, player, error);
}

enum status platform_player_list(struct platform_store *store, player_visitor *visit, void *context,
                                 struct error *error)
{
    return store->engine->player_list(store, visit, context, error);
}

enum status platform_player_put(struct platform_store *store, const struct player_record *records,
                                size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = player_record_check(&records[i], error);
        if (status != STATUS_OK)
            return status;
    }
    return count == 0 ? STATUS_OK : store->engine->player_put(store, records, count, error);
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
    if (!copy_field(place.player_id, sizeof place.player_id, player_id))
        return error_set(error, STATUS_NOT_FOUND, "there is no such player");
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

enum status platform_revision(struct platform_store *store, uint64_t *revision, struct error *error)
{
    return store->engine->revision(store, revision, error);
}

enum status platform_changes_since(struct platform_store *store, uint64_t since,
                                   const struct platform_changes *visit, uint64_t *revision,
                                   struct error *error)
{
    return store->engine->changes_since(store, since, visit, revision, error);
}
