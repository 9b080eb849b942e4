#pragma once

#include <sys/queue.h>

#include "http/http.h"

/*
 * A deferred request: the handler replies later, unless the client closes first. The caller embeds
 * this struct in its own, and `request` shows whether the request still exists. Everything here
 * runs on the request's thread.
 */
struct http_deferral {
    struct http_request *request; /* NULL: taken, or the client has closed */
    /* Called when the client has closed; `request` is NULL by then. May be NULL. */
    void (*gone)(struct http_deferral *deferral);
    struct http_deferral_queue *queue; /* from here on for the queue */
    TAILQ_ENTRY(http_deferral) link;
    uint64_t deadline_ms; /* of the loop's clock */
};

/* The caller sets `gone` before. */
void http_defer(struct http_deferral *deferral, struct http_request *request);

/* Returns the request, to reply to it or to defer it elsewhere. NULL: the client has closed, or the
 * request was already taken. */
struct http_request *http_deferral_take(struct http_deferral *deferral);

/*
 * Deferrals with the same limit, in order of arrival, so that one timer serves all of them.
 *
 * `late` is called once for each deferral that is still on the queue at its deadline, even if its
 * request no longer exists. It may remove any deferral from the queue, also its own. The timer does
 * not keep the loop alive.
 */
struct http_deferral_queue {
    uint64_t limit_ms;
    void (*late)(struct http_deferral *deferral);
    void (*over)(void *owner);
    void *owner;
    size_t count;
    TAILQ_HEAD(, http_deferral) deferrals; /* the oldest first */
    struct http_deferral *next;            /* the oldest that was not late yet; NULL: none */
    uv_timer_t timer;
    bool closed, timer_closed;
};

/* Initialises a queue in place, as a member of its owner. */
void http_deferral_queue_init(struct http_deferral_queue *queue, uv_loop_t *loop, uint64_t limit_ms,
                              void (*late)(struct http_deferral *deferral));

/* Appends it as the newest. It stays until it is removed, even if its client closes. */
void http_deferral_append(struct http_deferral_queue *queue, struct http_deferral *deferral);

/* Removes it from its queue, if it is on one. */
void http_deferral_remove(struct http_deferral *deferral);

/* Call it only when no request is waiting. `over` is called once, when the last deferral is removed
 * and the timer is closed; it may free the queue's owner. The loop must run once more. */
void http_deferral_queue_close(struct http_deferral_queue *queue, void (*over)(void *owner),
                               void *owner);
