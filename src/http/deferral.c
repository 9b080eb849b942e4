/* Deferred requests, and the one timer of a queue; see deferral.h. */
#include "http/deferral.h"

#include "base/clock.h"
#include "base/status.h"

/* ---- one ------------------------------------------------------------------------------------- */

static void on_abandoned(struct http_request *request)
{
    struct http_deferral *deferral = request->deferral;
    CHECK(deferral->request == request);
    deferral->request = NULL;
    if (deferral->gone != NULL)
        deferral->gone(deferral);
}

void http_defer(struct http_deferral *deferral, struct http_request *request)
{
    CHECK(deferral->request == NULL && request->abandoned == NULL);
    deferral->request = request;
    request->deferral = deferral;
    request->abandoned = on_abandoned;
}

struct http_request *http_deferral_take(struct http_deferral *deferral)
{
    struct http_request *request = deferral->request;
    deferral->request = NULL;
    if (request != NULL) {
        request->abandoned = NULL;
        request->deferral = NULL;
    }
    return request;
}

/* ---- many ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm(struct http_deferral_queue *queue, uint64_t deadline_ms)
{
    uint64_t now_ms = clock_loop_ms(queue->timer.loop);
    uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    CHECK(uv_timer_start(&queue->timer, on_timer, left_ms, 0) == 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_deferral_queue *queue = timer->data;
    uint64_t now_ms = clock_loop_ms(timer->loop);
    while (queue->next != NULL && queue->next->deadline_ms <= now_ms) {
        struct http_deferral *deferral = queue->next;
        queue->next = TAILQ_NEXT(deferral, link);
        queue->late(deferral);
    }
    if (queue->next != NULL)
        arm(queue, queue->next->deadline_ms);
}

void http_deferral_queue_init(struct http_deferral_queue *queue, uv_loop_t *loop, uint64_t limit_ms,
                              void (*late)(struct http_deferral *deferral))
{
    *queue = (struct http_deferral_queue){.limit_ms = limit_ms, .late = late};
    TAILQ_INIT(&queue->deferrals);
    clock_make_timer(loop, &queue->timer, queue);
    uv_unref((uv_handle_t *)&queue->timer);
}

void http_deferral_append(struct http_deferral_queue *queue, struct http_deferral *deferral)
{
    CHECK(deferral->queue == NULL && !queue->closed);
    deferral->queue = queue;
    deferral->deadline_ms = clock_loop_ms(queue->timer.loop) + queue->limit_ms;
    TAILQ_INSERT_TAIL(&queue->deferrals, deferral, link);
    queue->count++;
    if (queue->next == NULL)
        queue->next = deferral;
    if (!uv_is_active((uv_handle_t *)&queue->timer))
        arm(queue, deferral->deadline_ms);
}

static void end_when_over(struct http_deferral_queue *queue)
{
    if (queue->timer_closed && queue->count == 0 && queue->over != NULL)
        queue->over(queue->owner);
}

void http_deferral_remove(struct http_deferral *deferral)
{
    struct http_deferral_queue *queue = deferral->queue;
    if (queue == NULL)
        return;
    deferral->queue = NULL;
    if (queue->next == deferral)
        queue->next = TAILQ_NEXT(deferral, link);
    TAILQ_REMOVE(&queue->deferrals, deferral, link);
    queue->count--;
    end_when_over(queue);
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct http_deferral_queue *queue = timer->data;
    queue->timer_closed = true;
    end_when_over(queue);
}

void http_deferral_queue_close(struct http_deferral_queue *queue, void (*over)(void *owner),
                               void *owner)
{
    const struct http_deferral *deferral;
    TAILQ_FOREACH (deferral, &queue->deferrals, link)
        CHECK(deferral->request == NULL);
    CHECK(!queue->closed);
    queue->closed = true;
    queue->over = over;
    queue->owner = owner;
    uv_close((uv_handle_t *)&queue->timer, on_timer_closed);
}
