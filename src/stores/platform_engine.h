#ifndef CROUPIER_STORES_PLATFORM_ENGINE_H
#define CROUPIER_STORES_PLATFORM_ENGINE_H

#include "stores/platform.h"
#include "stores/platform_games.h"
#include "stores/platform_ledger.h"

/*
 * What an engine of the platform store provides; only files in stores/ include this. The front
 * (platform_store.c) chooses the engine by the URI's scheme and checks every record before the engine
 * sees it, so an engine only stores and finds. Each function does what platform_store.h says of the
 * function of its name. A new engine is one row in the table of platform_store.c.
 */
struct platform_engine {
    const char *scheme; /* with its colon: "sqlite:" */
    const char *alias;  /* another way to write it; NULL: none */
    enum status (*open)(struct platform_store **store, const struct platform_store_options *options,
                        struct error *error);
    void (*close)(struct platform_store *store);
    enum status (*migrate)(struct platform_store *store, uint32_t *before, uint32_t *after,
                           struct error *error);
    enum status (*ping)(struct platform_store *store, struct error *error);

    enum status (*customer_add)(struct platform_store *store, const struct customer_record *record,
                                struct error *error);
    enum status (*customer_update)(struct platform_store *store,
                                   const struct customer_record *record, struct error *error);
    enum status (*customer_get)(struct platform_store *store, const char *id,
                                struct customer_record *record, struct error *error);
    enum status (*customer_list)(struct platform_store *store, customer_visitor *visit,
                                 void *context, struct error *error);

    enum status (*key_add)(struct platform_store *store, const struct key_record *record,
                           struct error *error);
    enum status (*key_revoke)(struct platform_store *store, const char *key_id, int64_t now_ms,
                              struct error *error);
    enum status (*key_list)(struct platform_store *store, const char *customer_id,
                            key_visitor *visit, void *context, struct error *error);
    enum status (*key_touch)(struct platform_store *store, const struct key_use *uses, size_t count,
                             struct error *error);

    enum status (*legacy_put)(struct platform_store *store, const struct legacy_record *record,
                              struct error *error);
    enum status (*legacy_get)(struct platform_store *store, const struct address *address,
                              struct legacy_record *record, struct error *error);
    enum status (*legacy_list)(struct platform_store *store, legacy_visitor *visit, void *context,
                               struct error *error);

    enum status (*player_open)(struct platform_store *store, const struct player_record *wanted,
                               struct player_record *player, struct error *error);
    enum status (*player_get)(struct platform_store *store, const char *player_id,
                              struct player_record *player, struct error *error);
    enum status (*player_list)(struct platform_store *store, player_visitor *visit, void *context,
                               struct error *error);
    enum status (*player_put)(struct platform_store *store, const struct player_record *records,
                              size_t count, struct error *error);

    enum status (*ledger_begin)(struct platform_store *store, struct ledger_batch *batch,
                                struct error *error);
    enum status (*ledger_commit)(struct platform_store *store, const struct ledger_batch *batch,
                                 bool *unknown, struct error *error);
    enum status (*ledger_recover)(struct platform_store *store, struct error *error);
    enum status (*ledger_balances)(struct platform_store *store, struct ledger_place *places,
                                   size_t count, struct error *error);
    enum status (*ledger_id)(struct platform_store *store, struct ledger_fact *fact,
                             struct error *error);
    enum status (*ledger_entries)(struct platform_store *store, const char *player_id,
                                  ledger_entry_visitor *visit, void *context, struct error *error);
    enum status (*ledger_transactions)(struct platform_store *store,
                                       ledger_transaction_visitor *visit, void *context,
                                       struct error *error);
    enum status (*ledger_entered)(struct platform_store *store, int64_t from_ms, int64_t to_ms,
                                  ledger_transaction_visitor *visit, void *context,
                                  struct error *error);
    enum status (*ledger_clearings)(struct platform_store *store, ledger_clearing_visitor *visit,
                                    void *context, struct error *error);
    enum status (*ledger_declines)(struct platform_store *store, ledger_entry_visitor *visit,
                                   void *context, struct error *error);
    enum status (*ledger_integrity)(struct platform_store *store, const char **how,
                                    struct error *error);
    enum status (*ledger_counterparts)(struct platform_store *store, struct error *error);
    enum status (*ledger_count)(struct platform_store *store, uint64_t *count, struct error *error);
    bool (*ledger_wants_upkeep)(
        struct platform_store *store); /* NULL, as the next: there is none */
    enum status (*ledger_upkeep)(struct platform_store *store, struct error *error);
    enum status (*snapshot_begin)(struct platform_store *store, struct error *error);
    void (*snapshot_end)(struct platform_store *store);

    enum status (*revision)(struct platform_store *store, uint64_t *revision, struct error *error);
    enum status (*changes_since)(struct platform_store *store, uint64_t since,
                                 const struct platform_changes *visit, uint64_t *revision,
                                 struct error *error);

    enum status (*provider_add)(struct platform_store *store, const struct provider_record *record,
                                struct error *error);
    enum status (*provider_update)(struct platform_store *store,
                                   const struct provider_record *record, struct error *error);
    enum status (*provider_get)(struct platform_store *store, const char *id,
                                struct provider_record *record, struct error *error);
    enum status (*games_put)(struct platform_store *store, const struct game_record *records,
                             const bool *set_enabled, size_t count, int64_t now_ms,
                             struct games_put_result *result, struct error *error);
    enum status (*game_get)(struct platform_store *store, const char *id,
                            struct game_record *record, struct error *error);
    enum status (*game_enable)(struct platform_store *store, const char *id, bool enabled,
                               int64_t now_ms, struct error *error);
    enum status (*game_policy_put)(struct platform_store *store,
                                   const struct game_policy_record *record, struct error *error);
    enum status (*games_revision)(struct platform_store *store, uint64_t *revision,
                                  struct error *error);
    enum status (*games_read)(struct platform_store *store,
                              const struct platform_games_visit *visit, uint64_t *revision,
                              struct error *error);
};

/* The head of every engine's own struct. */
struct platform_store {
    const struct platform_engine *engine;
};

extern const struct platform_engine platform_sqlite_engine;
extern const struct platform_engine platform_postgres_engine;

/* A step of the schema, from sql/ENGINE/NNNN_name.sql (tools/embed_migrations.py). */
struct migration {
    uint32_t number;
    const char *name;
    const char *checksum; /* SHA-256 of the file, 64 hexadecimal digits */
    const char *sql;
};
extern const struct migration sqlite_migrations[];
extern const size_t sqlite_migration_count;
extern const struct migration postgres_migrations[];
extern const size_t postgres_migration_count;

#endif
