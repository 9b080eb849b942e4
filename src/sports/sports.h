#ifndef CROUPIER_SPORTS_SPORTS_H
#define CROUPIER_SPORTS_SPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "base/work_pool.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "records/event_id.h"
#include "records/sport.h"
#include "stores/odds.h"

/*
 * Sports: answers made ready once when a stored value changes, and sent as they are.
 *
 *   struct sports  shared by all threads: the catalogs (indexed by gmid), the ready-made answers,
 *   and
 *                  the jobs that make them, single-flight, on the work pool.
 *   sports_cache    one serving thread's side: what it has ready, under which stamp of the store.
 *
 * A lookup either has the answer at once or defers the request until it is ready; it is never an
 * answer that the store could already have replaced when the request came.
 */

struct sports;
struct sports_cache;

/* `read_ms`: the deadline of a read of `odds`. A request waits a second longer at most, and at
 * least two. */
struct sports *sports_create(struct odds_store *odds, uint32_t read_ms, struct work_pool *pool,
                             struct log *log);
/* Waits until no value is being read, at most the store's deadline: a read goes on after whoever
 * waited for it has gone, and then needs the pool. No request may come any more; the pool and all
 * mailboxes are still there. */
void sports_drain(struct sports *sports);
/* The pool is idle, all caches are gone, and their mailboxes have delivered what was on its way. */
void sports_destroy(struct sports **sports);

/* How many polls may wait at a time, of all caches; 0 at first. Any thread. */
void sports_set_waiting_max(struct sports *sports, uint32_t most);

/* How old is what was asked for within the last minute; as of when it was asked for last. */
struct sports_ages {
    int64_t
        catalog_ms;  /* since it was published; negative: it was not asked for, or is not known */
    int64_t odds_ms; /* of the event whose odds are the oldest; as above */
    uint64_t stale;  /* events with odds that are older than stale_after_s */
};

/* Odds that are older than that are stale; 0: none are. Any thread. */
void sports_set_stale_after(struct sports *sports, uint32_t seconds);
/* Logs when odds of a sport begin to be stale and when none are any more. About once a second, on
 * one thread. */
void sports_look_at_ages(struct sports *sports);

struct sports_facts {
    struct sports_ages ages[SPORT_COUNT];
    uint64_t waiting; /* polls */
    uint64_t answers; /* held ready */
    uint64_t bytes;
};
void sports_facts(struct sports *sports, struct sports_facts *facts);
extern const struct metric sports_metrics[];         /* of those */
extern const struct metric sports_counted_metrics[]; /* of a serving thread */

/* What polls that wait (waiting.h) need of those who decide whether they may be answered. */
struct sports_waits {
    void *context;
    /* The request has waited, and is to be judged and answered as if it had come now; it has been
     * counted against its budget. */
    void (*resume)(void *context, struct http_request *request);
    /* Moves whenever who may do what may have changed; 0: that is not known at present. */
    uint64_t (*epoch)(void *context);
    /* Until when it may be answered by what is known of who asks, by clock_monotonic_ms. */
    uint64_t (*until_ms)(void *context, const struct http_request *request);
    /* One more wait begins, which ends with the request's answer or its connection. False: its
     * customer has as many as it may have. */
    bool (*begin)(void *context, const struct http_request *request);
};

/* `mailbox` is the serving thread's; all are borrowed. `waits` NULL: no poll waits. */
struct sports_cache *sports_cache_create(struct sports *sports, struct mailbox *mailbox,
                                         metrics_cell *counters, const struct sports_waits *waits);
/* The server drains: polls that wait are answered. */
void sports_cache_drain(struct sports_cache *cache);
/* On the cache's thread, when no request is deferred any more (all were answered or abandoned).
 * The mailbox may be destroyed after it; the loop must run once more to let go of a timer. */
void sports_cache_destroy(struct sports_cache **cache);

/* What a cache does for a request whose path is right: it replies, at once or later. On the cache's
 * thread. */
void sports_cache_answer_sports(struct sports_cache *cache, struct http_request *request,
                                sport_set allowed);
/* The list of the sport's events when `event` is NULL. */
void sports_cache_answer(struct sports_cache *cache, struct http_request *request, enum sport sport,
                         const struct event_id *event);

#endif
