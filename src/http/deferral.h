#ifndef CROUPIER_HTTP_DEFERRAL_H
#define CROUPIER_HTTP_DEFERRAL_H

#include <sys/queue.h>

#include <uv.h>

#include "http/http.h"

/*
 * A deferred request: it is replied to later, when something else has happened, unless its client
 * goes away before. The struct is part of whatever does the work and says whether the request is
 * still there. Everything here runs on the request's thread.
 */
struct http_deferral {
    struct http_request *request; /* NULL: taken back, or gone */
    /* The client went away, and `request` is NULL. May be NULL. */
    void (*gone)(struct http_deferral *deferral);
    struct http_deferral_queue *queue; /* from here on the queue's */
    TAILQ_ENTRY(http_deferral) link;
    uint64_t deadline_ms; /* of the loop's clock */
};

/* `gone` is set already. */
void http_defer(struct http_deferral *deferral, struct http_request *request);

/* The request, to reply to it or to defer it elsewhere; NULL: it is gone, or was taken back
 * before. */
struct http_request *http_deferral_take(struct http_deferral *deferral);

/*
 * Those that wait equally long at most, in the order in which they came, so that one timer serves
 * all.
 *
 * `late` is called once for each that is still on the queue when its time is over, whether or not
 * its request is there; it may take any off the queue, itself too. The timer does not keep the loop
 * alive.
 */
struct http_deferral_queue {
    uint64_t limit_ms;
    void (*late)(struct http_deferral *deferral);
    void (*over)(void *owner);
    void *owner;
    size_t count;
    TAILQ_HEAD(, http_deferral) deferrals; /* the oldest first */
    struct http_deferral *next;            /* to be late: the oldest that was not; NULL: none */
    uv_timer_t timer;
    bool closed, timer_closed;
};

/* In place, as part of its owner. */
void http_deferral_queue_init(struct http_deferral_queue *queue, uv_loop_t *loop, uint64_t limit_ms,
                              void (*late)(struct http_deferral *deferral));

/* As the newest. It stays until it is removed, whatever becomes of its request. */
void http_deferral_append(struct http_deferral_queue *queue, struct http_deferral *deferral);

/* Takes it off its queue, if it is on one. */
void http_deferral_remove(struct http_deferral *deferral);

/* Only when no request is waiting. `over` is called once, when the last one is removed and the
 * timer is closed; it may free all of it. The loop must run once more. */
void http_deferral_queue_close(struct http_deferral_queue *queue, void (*over)(void *owner),
                               void *owner);

#endif
