#pragma once

#include "stores/odds/lmdb/interest.h"
#include "stores/odds/lmdb/values.h"
#include "stores/odds_engine.h"

/* The embedded store's life: which opening of the values is in use, and the background thread. */

MUST_CHECK enum status lmdb_store_open(struct odds_store **store,
                                       const struct odds_store_options *options, const char *root,
                                       struct error *error);
void lmdb_store_close(struct odds_store *store);

/* A call: from enter, which may refuse it, to leave. */
struct lmdb_use {
    struct lmdb_store *store;
    struct lmdb_gate *gate;
    struct lmdb_values *values;
    struct lmdb_interest *interest;
    const char *root; /* of the store */
};
/* STATUS_UNAVAILABLE, and why: there are no values now. `error` may be NULL. */
MUST_CHECK enum status lmdb_store_enter(struct odds_store *store, struct lmdb_use *use,
                                        struct error *error);
/* The call's answer; broken values (STATUS_INTERNAL) are retired on the way. */
MUST_CHECK enum status lmdb_store_leave(struct lmdb_use *use, enum status status);

void lmdb_store_wake(struct odds_store *store);
/* Fills in all facts of the engine but the times at which sports were published. */
void lmdb_store_facts(struct odds_store *store, struct odds_facts *facts);
/* May wait for another process, for as long as publishing may take. */
MUST_CHECK enum status lmdb_store_publish(struct odds_store *store,
                                          const struct odds_change *changes, size_t count,
                                          struct error *error);
