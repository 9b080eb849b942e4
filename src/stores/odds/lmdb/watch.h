#pragma once

#include "stores/odds/lmdb/values.h"

/*
 * Looks for commits of any process, on the loop of the background thread. A commit writes the data
 * file, which the kernel reports (inotify).
 */
struct lmdb_watch;

/* `due`: lmdb_watch_look is to be called now. */
struct lmdb_watch *lmdb_watch_create(struct odds_store *store, uv_loop_t *loop, void *owner,
                                     void (*due)(void *owner));
void lmdb_watch_close(struct lmdb_watch *watch);    /* its handles */
void lmdb_watch_destroy(struct lmdb_watch **watch); /* they are closed */

/* Reports to the store's watch, if there is one, what has changed in `values` or has expired, and
 * counts what has expired. The caller keeps `values` from being closed; NULL: there are none.
 * `epoch`: of the opening. */
void lmdb_watch_look(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch);
