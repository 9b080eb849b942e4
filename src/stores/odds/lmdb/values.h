#pragma once

#include <uv.h>

#include "stores/odds/lmdb/environment.h"
#include "stores/odds_read.h"

/*
 * One opening of the values environment, as threads share it: look-ups in snapshots, and
 * publishing.
 *
 * Versions and stamps are LMDB's own transaction numbers with the epoch above them: the epoch
 * counts how often this store handle opened an environment, so numbers of a store and of another
 * that replaced it never meet. A stamp also counts the times at which values have expired, as no
 * commit says so.
 */

struct lmdb_values {
    struct lmdb_env env;
    uint64_t epoch;
    uv_mutex_t lock; /* guards the index and the lists */
    struct lmdb_index index;
    struct buffer expired;       /* struct lmdb_entry: expired, and not reported yet */
    struct lmdb_index written;   /* the publisher's, who has it alone */
    bool damaged;                /* the publisher's: a publication met damage in the file */
    struct lmdb_view *idle;      /* their transactions are reset */
    atomic_uint_fast64_t newest; /* transaction that was read */
    atomic_int_fast64_t next_deadline_ms; /* the index's */
    atomic_uint_fast64_t expiries; /* times at which values have expired, all of one time at once */
};

MUST_CHECK enum status lmdb_values_open(struct lmdb_values **values,
                                        const struct lmdb_location *location, uint64_t epoch,
                                        struct error *error);
void lmdb_values_close(struct lmdb_values **values); /* no thread uses it any more */

/* Of all that follow, STATUS_INTERNAL means: broken, retire it. Any thread. */

MUST_CHECK enum status lmdb_values_stamp(struct lmdb_values *values, uint64_t *stamp);

/* Takes the values that have expired since the last call: struct lmdb_entry, the caller's. */
void lmdb_values_take_expired(struct lmdb_values *values, struct buffer *expired);

/* A look into one snapshot. */
struct lmdb_lookup {
    enum sport sport;
    const struct event_id *event; /* find its odds in the index; NULL: no event's */
    struct buffer *events;        /* gets the events of the sport that have odds; may be NULL */
    /* Called in the snapshot, in a guarded body: it leaves its memory where the caller
     * frees it. May be NULL. */
    enum status (*read)(struct lmdb_lookup *lookup, const struct lmdb_view *view);
    void *context; /* of `read` */

    uint64_t transaction; /* of the snapshot */
    uint64_t catalog;     /* which transaction wrote the sport's; 0: there is none */
    int64_t deadline_ms;  /* of the event's odds, without an event of the catalog; 0: none */
    uint64_t odds;        /* which transaction wrote the event's; 0: there are none */
    struct odds_versions versions; /* the same as versions and a stamp */
};
MUST_CHECK enum status lmdb_values_look_up(struct lmdb_values *values, struct lmdb_lookup *lookup);

/* One writer of this process at a time. */
MUST_CHECK enum status lmdb_values_publish(struct lmdb_values *values,
                                           const struct odds_change *changes, size_t count,
                                           struct error *error);
MUST_CHECK enum status lmdb_values_back_up(struct lmdb_values *values, const char *path,
                                           struct error *error);
