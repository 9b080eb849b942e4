#ifndef CROUPIER_STORES_ODDS_ENGINE_H
#define CROUPIER_STORES_ODDS_ENGINE_H

#include "stores/odds.h"

/*
 * What an engine of the odds store provides. For engines and odds_store.c alone; everybody else
 * includes odds_store.h.
 *
 * An engine is one constant of this struct, listed in odds_store.c. The verbs mean what
 * odds_store.h says of the function of the same name; arguments have been checked by then (kinds
 * and sports are real ones, event ids are there where one is needed, sizes are in bounds). An
 * engine's own struct starts with a `struct odds_store`, its reader's with a `struct odds_reader`.
 */

struct odds_engine {
    const char *scheme; /* with its colon: "embedded:" */

    /* `place` is what follows the scheme, never empty. `patient`: odds_store_open_patiently. */
    enum status (*open)(struct odds_store **store, const struct odds_store_options *options,
                        const char *place, bool patient, struct error *error);
    void (*close)(struct odds_store *store);

    enum status (*stamp)(struct odds_store *store, uint64_t *stamp);
    struct odds_reader *(*reader_create)(struct odds_store *store);
    void (*reader_destroy)(struct odds_reader *reader);
    enum status (*versions)(struct odds_reader *reader, enum sport sport,
                            const struct event_id *event, struct odds_versions *versions);
    enum status (*read)(struct odds_store *store, struct odds_read *read);
    enum status (*ping)(struct odds_store *store, enum odds_need need, struct error *error);
    void (*note_interest)(struct odds_store *store, enum sport sport, const struct event_id *event);
    enum status (*lease)(struct odds_store *store,
                         struct odds_lease *lease); /* or NULL: has none */
    void (*facts)(struct odds_store *store, struct odds_facts *facts);

    enum status (*publish)(struct odds_store *store, const struct odds_change *changes,
                           size_t count, struct error *error);
    enum status (*withdraw_sport)(struct odds_store *store, enum sport sport, struct error *error);
    enum status (*list_interest)(struct odds_store *store, enum sport sport, int64_t since_ms,
                                 struct odds_interest **list, size_t *count, struct error *error);
    enum status (*list_events)(struct odds_store *store, enum sport sport, struct event_id **list,
                               size_t *count, struct error *error);
};

struct odds_store {
    const struct odds_engine *engine;
};

struct odds_reader {
    struct odds_store *store;
};

extern const struct odds_engine odds_engine_lmdb;           /* odds_lmdb.c */
extern const struct odds_engine odds_engine_redis;          /* odds_redis.c, */
extern const struct odds_engine odds_engine_rediss;         /* by TLS, */
extern const struct odds_engine odds_engine_redis_unix;     /* by a socket of this machine, */
extern const struct odds_engine odds_engine_redis_sentinel; /* by Sentinel */

#endif
