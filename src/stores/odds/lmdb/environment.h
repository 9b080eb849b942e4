#pragma once

#include <sys/stat.h>

#include "base/status.h"
#include "stores/odds/lmdb/edit.h"

/*
 * The LMDB environment on disk, DIR/values/{data,lock}.mdb: opening it, writing, noticing that it
 * was replaced. docs/decisions/embedded-odds.md says what is done about damage.
 */

struct lmdb_location {
    const char *root; /* DIR */
    bool create;      /* make the store when there is none */
    bool renew;       /* put a new store in the place of one that is damaged or older */
    uint32_t wait_ms; /* for other processes that are opening it */
    bool damaged;     /* a publication met damage in it */
    /* The store that this process used last, 0: none, and its newest transaction there: the same
     * store with an older one is damaged. */
    uint64_t identity, transaction;
};

struct lmdb_env {
    MDB_env *env; /* NULL: not open */
    MDB_dbi dbi;
    uint64_t identity; /* 0: not known yet */
    int folder;        /* its descriptor, for the writer's turn */
    char *data_path;
    char *lock_path;
    struct stat data;
    struct stat lock;
    struct error damage; /* why the store before was set aside; "": there was none */

    LIST_ENTRY(lmdb_env) link; /* of those that this process has open */
    bool listed;
    struct stat place; /* of the folder */
};

/*
 * Opens a zeroed environment, and builds the index by reading everything. STATUS_UNAVAILABLE,
 * STATUS_MALFORMED (damaged), STATUS_FULL, STATUS_TIMEOUT (others are opening it), with a text that
 * names the path and the reason. Close it in any case.
 */
MUST_CHECK enum status lmdb_env_open(struct lmdb_env *env, const struct lmdb_location *location,
                                     struct lmdb_index *index, struct error *error);
/* Call it when all its transactions have ended. */
void lmdb_env_close(struct lmdb_env *env);

/* Are its files the ones under the path? Any thread. */
bool lmdb_env_in_place(const struct lmdb_env *env);

/* Begins a snapshot with its root; renews the view's transaction when it has one. In a guarded
 * body. */
int lmdb_view_begin(struct lmdb_view *view, const struct lmdb_env *env);
/* Ends the snapshot, outside of guarded bodies. `keep`: its transaction is to be renewed. */
void lmdb_view_end(struct lmdb_view *view, bool keep);

/* One write transaction; without an index it begins a new store. STATUS_TIMEOUT: another process
 * has been writing for too long. STATUS_MALFORMED: the file faults. Otherwise returns what
 * `result`, which is LMDB's, means. Nothing is written unless STATUS_OK. */
MUST_CHECK enum status lmdb_env_write(const struct lmdb_env *env, struct lmdb_index *index,
                                      const struct odds_change *changes, size_t count, int *result);

/* An LMDB result as a status. STATUS_INTERNAL: the environment is broken and must be opened
 * again. */
enum status lmdb_status(const struct lmdb_env *env, int result);
