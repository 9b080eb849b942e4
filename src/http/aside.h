#ifndef CROUPIER_HTTP_ASIDE_H
#define CROUPIER_HTTP_ASIDE_H

#include <uv.h>

#include "http/http.h"

/*
 * A request that is set aside, to be replied to when something else has happened: the place that
 * knows whether it is still there. Embedded in whatever does the work, whose owner it says nothing
 * about. Everything here runs on the request's thread.
 */
struct http_aside {
    struct http_request *request; /* NULL: taken back, or gone */
    void (*gone)(
        struct http_aside *aside);  /* the client went away, `request` is NULL; may be NULL */
    struct http_aside_queue *queue; /* from here on the queue's */
    struct http_aside *newer, *older;
    uint64_t deadline_ms; /* of the loop's clock */
};

/* `gone` is set already. */
void http_aside_put(struct http_aside *aside, struct http_request *request);

/* The request, to reply to it or to set it aside elsewhere; NULL: it is gone, or was taken back
 * before. */
struct http_request *http_aside_take(struct http_aside *aside);

/*
 * Those that wait equally long at most, in the order in which they came, so that one timer serves
 * all.
 *
 * `late` is called once for each that is still on the queue when its time is over, whether or not
 * its request is there; it may take any off the queue, itself too. The timer does not keep the loop
 * alive.
 */
struct http_aside_queue {
    uint64_t limit_ms;
    void (*late)(struct http_aside *aside);
    void (*over)(void *owner);
    void *owner;
    size_t count;
    struct http_aside *newest, *oldest;
    struct http_aside *next; /* to be late: the oldest that was not; NULL: none */
    uv_timer_t timer;
    bool closed, timer_closed;
};

/* In place, as part of its owner. */
void http_aside_queue_init(struct http_aside_queue *queue, uv_loop_t *loop, uint64_t limit_ms,
                           void (*late)(struct http_aside *aside));

/* As the newest. It stays until it is removed, whatever becomes of its request. */
void http_aside_append(struct http_aside_queue *queue, struct http_aside *aside);

/* Takes it off its queue, if it is on one. */
void http_aside_remove(struct http_aside *aside);

/* Only when no request is waiting. `over` is called once, when the last one is removed and the
 * timer is closed; it may free all of it. The loop must run once more. */
void http_aside_queue_close(struct http_aside_queue *queue, void (*over)(void *owner), void *owner);

#endif
