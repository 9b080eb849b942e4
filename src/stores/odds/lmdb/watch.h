#ifndef CROUPIER_STORES_ODDS_LMDB_WATCH_H
#define CROUPIER_STORES_ODDS_LMDB_WATCH_H

#include "stores/odds/lmdb/values.h"

/*
 * The background thread's way of waiting, for whichever comes first: a wake-up, a commit of any
 * process, or the time. A commit writes the data file, which the kernel reports (inotify).
 */
struct lmdb_watch;

struct lmdb_watch *lmdb_watch_create(struct odds_store *store);
void lmdb_watch_destroy(struct lmdb_watch **watch);

/* Any thread: ends the wait that is under way, or the next one. */
void lmdb_watch_wake(struct lmdb_watch *watch);
/* At most that long. */
void lmdb_watch_wait(struct lmdb_watch *watch, uint64_t ms);
/* Reports to the store's watch, if there is one, what has changed in `values`, which the caller
 * keeps from being closed; NULL: there are none. `epoch`: of the opening. */
void lmdb_watch_look(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch);

#endif
