#pragma once

#include "base/mailbox.h"
#include "base/work_pool.h"
#include "http/http.h"
#include "http/path.h"
#include "stores/odds.h"

/*
 * Sports: answers are made ready once when a stored value changes, and sent as they are.
 *
 *   struct sports  shared by all threads: the catalogs (indexed by gmid), the ready-made answers,
 *                  and the jobs that make them, single-flight, on the work pool.
 *   sports_cache   one serving thread's side: the entries it has, each with the store's stamp.
 *
 * A lookup either has the answer at once or defers the request until the answer is ready. It never
 * sends an answer that the store had already replaced when the request came.
 */

struct sports;
struct sports_cache;

/* `read_ms`: the deadline of a read of `odds`. A request waits at most a second longer than that,
 * or two seconds if that is more. */
struct sports *sports_create(struct odds_store *odds, uint32_t read_ms, struct work_pool *pool,
                             struct log *log);
/* Waits until no job is under way, at most the store's deadline. A read goes on after its requests
 * have gone, and then needs the pool. No request may come any more; the pool and all mailboxes must
 * still exist. */
void sports_drain(struct sports *sports);
/* Requires that the pool is idle, all caches are destroyed, and their mailboxes have delivered all
 * mail. */
void sports_destroy(struct sports **sports);

/* Sets how many polls of all caches may wait at a time, after how long odds are stale (0: never),
 * and how much memory earlier bodies may take, from which differences are made (0: none are). All
 * are 0 at first. Any thread. */
void sports_set_limits(struct sports *sports, uint32_t waiting_max, uint32_t stale_after_s,
                       uint32_t differences_mib);

/* The ages of the values that clients asked for within the last minute, as of the last request for
 * each. */
struct sports_ages {
    int64_t catalog_ms; /* since it was published; negative: not asked for, or not known */
    int64_t odds_ms;    /* of the event whose odds are the oldest; as above */
    uint64_t stale;     /* events with odds that are older than stale_after_s */
};

/* Logs when odds of a sport begin to be stale and when none are any more. About once a second, on
 * one thread. */
void sports_look_at_ages(struct sports *sports);

struct sports_facts {
    struct sports_ages ages[SPORT_COUNT];
    uint64_t waiting; /* polls */
    uint64_t answers; /* held ready */
    uint64_t bytes;
    uint64_t kept; /* bytes of the bodies that differences are made from */
};
void sports_facts(struct sports *sports, struct sports_facts *facts);
extern const struct metric sports_metrics[];         /* of struct sports_facts */
extern const struct metric sports_counted_metrics[]; /* of a serving thread */

/* The functions by which waiting polls (waiting.h) ask admission whether they may be answered. */
struct sports_waits {
    void *context;
    /* The request has waited: judges and answers it as if it had come now. It has already been
     * counted against its budget. */
    void (*resume)(void *context, struct http_request *request);
    /* A number that changes whenever a right may have changed; 0: not known at present. */
    uint64_t (*epoch)(void *context);
    /* Until when the known rights of its client hold, by clock_monotonic_ms. */
    uint64_t (*until_ms)(void *context, const struct http_request *request);
    /* One more wait begins, which ends with the request's answer or its connection. False: its
     * customer has as many as it may have. */
    bool (*begin)(void *context, const struct http_request *request);
};

/* `mailbox` is the serving thread's; all are borrowed. `waits` NULL: no poll waits. */
struct sports_cache *sports_cache_create(struct sports *sports, struct mailbox *mailbox,
                                         metrics_cell *counters, const struct sports_waits *waits);
/* The server drains: answers the waiting polls. */
void sports_cache_drain(struct sports_cache *cache);
/* Call it on the cache's thread, when no request is deferred any more (all were answered or
 * abandoned). The mailbox may be destroyed after it. The loop must run once more to close a
 * timer. */
void sports_cache_destroy(struct sports_cache **cache);

/* The routes of sports, on the cache's thread. The caller has checked admission, rate limit, method
 * and the form of the path. They reply at once or later; until then they own request->abandoned and
 * request->deferral.
 *
 * `values` are the texts in the path: the sport, or "" for the list of sports; and the event, or ""
 * for the list of events. Answers, in this order: 400 invalid_sport, then 400 invalid_event_id,
 * then 403 sport_not_allowed, then the store. */
void sports_route(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                  const struct text values[HTTP_PATH_VALUES]);
