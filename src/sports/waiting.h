#pragma once

#include "sports/changes.h"
#include "sports/sports.h"

/*
 * The polls of one cache that wait for a change (`Prefer: wait=N`, docs/interface.md). Private to
 * src/sports; on the cache's thread.
 *
 * A waiting poll is parked (http.h) in the group of the polls that wait for the same value. An
 * event that may end the wait only makes the poll be judged again, as if it had come now: it passes
 * admission and the cache once more, and is answered or parked again. So the rules for a poll are
 * not repeated here. This file only decides when to judge it:
 *
 *   - A poll is due when its time is over, its client has shut its side, a right has changed, the
 *     store is unavailable, or the server drains.
 *   - When the store says that the value may have changed, one poll of the group looks first, as
 *     the leader. If it finds another answer, the others are due; if not, they go on waiting.
 *
 * Due polls are judged in slices, between which the loop does other work.
 */

struct waiting;
struct wait_group;

struct waiting_options {
    struct sports *sports;
    struct mailbox *mailbox;
    metrics_cell *counters;
    const struct sports_waits *waits;
    /* Given by the cache: */
    void *cache;
    /* The group of a value, or NULL. */
    struct wait_group *(*find)(void *cache, const struct odds_subject *subject);
    /* Polls still wait for the value: called about once a second. */
    void (*note)(void *cache, const struct odds_subject *subject, uint64_t now_ms);
    /* The mark of the cache's present answer; 0: it has none. */
    uint64_t (*mark)(void *cache, const struct odds_subject *subject);
};

struct waiting *waiting_create(const struct waiting_options *options);
/* Requires that no poll waits. The loop must run once more. */
void waiting_destroy(struct waiting **waiting);

/* The server drains and parks no more: answers the waiting polls. */
void waiting_drain(struct waiting *waiting);

/* Returns how long this request, whose answer would be `not modified` now, wants to wait in all; 0:
 * it does not, or that time is over. */
uint32_t waiting_wanted_s(const struct waiting *waiting, const struct http_request *request);

/*
 * Parks the request until the value in `place` changes, at most `wanted_s` from when it came. True:
 * the request is parked, and the caller no longer has it. False: the caller must answer it. `mark`
 * identifies its answer; `place` is where the value's group is kept. `sure`: the answer is right
 * under the store's present stamp, or the store will be asked again anyway. `rights_moved`: the
 * rights may have changed since the request was judged.
 */
struct wait_subject {
    struct odds_subject subject;
    struct wait_group **place;
    uint64_t mark;
    uint32_t wanted_s; /* above 0 */
    bool sure, rights_moved;
};
bool waiting_park(struct waiting *waiting, const struct wait_subject *what,
                  struct http_request *request);

/* The number of the rights as of the last tick; 0: not known. If it was the same when a deferred
 * request was judged, its rights have not changed since, or the next tick will tell. */
uint64_t waiting_epoch(const struct waiting *waiting);

/* ---- leaders --------------------------------------------------------------------------------- */

/* The group that this request leads. The caller must call waiting_led when it knows the outcome,
 * before it answers the request. NULL: it leads none. */
struct wait_group *waiting_take_lead(struct waiting *waiting, const struct http_request *request);

enum wait_outcome {
    WAIT_ANSWERED, /* the cache has the present value */
    WAIT_FAILED,   /* the value cannot be read: no poll needs to wait for it */
    WAIT_GONE,     /* the look had no outcome */
    WAIT_LATER,    /* no outcome, nor will there be one for a moment */
};
/* `group` NULL: does nothing. */
void waiting_led(struct waiting *waiting, struct wait_group *group, enum wait_outcome outcome);
