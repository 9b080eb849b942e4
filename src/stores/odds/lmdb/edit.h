#pragma once

#include "stores/odds/lmdb/index.h"
#include "stores/odds_feed.h"

/* A write transaction; inside odds_guard_run, like records.h. Freed outside. */
struct lmdb_edit {
    struct lmdb_view view;    /* its root becomes the commit's */
    struct lmdb_index *index; /* is brought to the transaction before; NULL: of a new store */
    int64_t now_ms;
    uint64_t boot;             /* clock_boot_id(), when something expires */
    bool expiring;             /* the format says so */
    struct lmdb_index changed; /* by this commit */
};

/* Reads the root of the store with this identity, or begins a new one. */
int lmdb_edit_begin(struct lmdb_edit *edit, uint64_t identity);
int lmdb_edit_change(struct lmdb_edit *edit, const struct odds_change *change);
/* Writes what has changed, and the root. */
int lmdb_edit_finish(struct lmdb_edit *edit);
