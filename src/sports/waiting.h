#ifndef CROUPIER_SPORTS_WAITING_H
#define CROUPIER_SPORTS_WAITING_H

#include "base/mailbox.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "sports/changes.h"
#include "sports/sports.h"

/*
 * The polls of one cache that wait for a change (`Prefer: wait=N`, docs/interface.md). Private to
 * src/sports; on the cache's thread.
 *
 * A poll that waits is parked (http.h) in the group of those that wait for the same value. Whatever
 * may end its wait only has it looked at again, as if it had come now: it goes through admission
 * and the cache once more, and is answered or parked again. So nothing that holds for a poll has to
 * be said here a second time, and what is decided here is only when to look:
 *
 *   - its time is over, its client has shut its side, who may do what has changed, the store is
 *     away, or the server drains: it is due;
 *   - the store says that the value may have changed: one of the group looks first, as the leader.
 *     When it finds another answer, the others are due; when not, the others go on waiting.
 *
 * Those who are due are looked at in slices, between which the loop does other work.
 */
#define WAIT_SECONDS_MAX 55U

struct waiting;
struct wait_group;

struct waiting_options {
    struct sports *sports;
    struct mailbox *mailbox;
    metrics_cell *counters;
    const struct sports_waits *waits;
    /* Of the cache: */
    void *cache;
    /* The group of a value, or NULL. */
    struct wait_group *(*find)(void *cache, const struct odds_subject *subject);
    /* Polls are still waiting for it: about once a second. */
    void (*note)(void *cache, const struct odds_subject *subject, uint64_t now_ms);
    /* What the answer is known by that is at hand; 0: there is none. */
    uint64_t (*mark)(void *cache, const struct odds_subject *subject);
};

struct waiting *waiting_create(const struct waiting_options *options);
/* No poll is waiting. The loop must run once more. */
void waiting_destroy(struct waiting **waiting);

/* The server drains, and parks no more: those who wait are answered. */
void waiting_drain(struct waiting *waiting);

/* How long this request, to which `not modified` would be the answer now, wants to wait in all; 0:
 * it does not, or that time is over. */
uint32_t waiting_wanted_s(const struct waiting *waiting, const struct http_request *request);

/*
 * Parks it until the value in `place` changes, `wanted_s` from when it came at most; the request is
 * gone then. False: it has to be answered. `mark` is what its answer is known by, `place` where the
 * value's group is kept. `sure`: the answer is right under the store's present stamp; `deferred`:
 * it was not looked at in one go, so that something may have been missed.
 */
struct wait_subject {
    struct odds_subject subject;
    struct wait_group **place;
    uint64_t mark;
    uint32_t wanted_s; /* above 0 */
    bool sure, deferred;
};
bool waiting_park(struct waiting *waiting, const struct wait_subject *what,
                  struct http_request *request);

/* ---- leaders --------------------------------------------------------------------------------- */

/* The group that this request leads, if it does: once it is known what becomes of it, and before it
 * is answered, waiting_led must be called. NULL: it leads none. */
struct wait_group *waiting_take_lead(struct waiting *waiting, const struct http_request *request);

enum wait_outcome {
    WAIT_ANSWERED, /* what the value is now is at hand */
    WAIT_FAILED,   /* it cannot be read: no poll needs to wait for it */
    WAIT_GONE,     /* nothing is known */
    WAIT_LATER,    /* nor will it be for a moment */
};
/* NULL: does nothing. */
void waiting_led(struct waiting *waiting, struct wait_group *group, enum wait_outcome outcome);

#endif
