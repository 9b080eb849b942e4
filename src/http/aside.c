/* The requests that are set aside, and the one timer for all of a queue: see aside.h. */
#include "http/aside.h"

#include "base/clock.h"
#include "base/status.h"

/* ---- one ------------------------------------------------------------------------------------- */

static void on_abandoned(struct http_request *request)
{
    struct http_aside *aside = request->aside;
    CHECK(aside->request == request);
    aside->request = NULL;
    if (aside->gone != NULL)
        aside->gone(aside);
}

void http_aside_put(struct http_aside *aside, struct http_request *request)
{
    CHECK(aside->request == NULL && request->abandoned == NULL);
    aside->request = request;
    request->aside = aside;
    request->abandoned = on_abandoned;
}

struct http_request *http_aside_take(struct http_aside *aside)
{
    struct http_request *request = aside->request;
    aside->request = NULL;
    if (request != NULL) {
        request->abandoned = NULL;
        request->aside = NULL;
    }
    return request;
}

/* ---- many ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm(struct http_aside_queue *queue, uint64_t deadline_ms)
{
    uint64_t now_ms = clock_loop_ms(queue->timer.loop);
    uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    CHECK(uv_timer_start(&queue->timer, on_timer, left_ms, 0) == 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_aside_queue *queue = timer->data;
    uint64_t now_ms = clock_loop_ms(timer->loop);
    while (queue->next != NULL && queue->next->deadline_ms <= now_ms) {
        struct http_aside *aside = queue->next;
        queue->next = aside->newer;
        queue->late(aside);
    }
    if (queue->next != NULL)
        arm(queue, queue->next->deadline_ms);
}

void http_aside_queue_init(struct http_aside_queue *queue, uv_loop_t *loop, uint64_t limit_ms,
                           void (*late)(struct http_aside *aside))
{
    *queue = (struct http_aside_queue){.limit_ms = limit_ms, .late = late};
    CHECK(uv_timer_init(loop, &queue->timer) == 0);
    queue->timer.data = queue;
    uv_unref((uv_handle_t *)&queue->timer);
}

void http_aside_append(struct http_aside_queue *queue, struct http_aside *aside)
{
    CHECK(aside->queue == NULL && !queue->closed);
    aside->queue = queue;
    aside->deadline_ms = clock_loop_ms(queue->timer.loop) + queue->limit_ms;
    aside->newer = NULL;
    aside->older = queue->newest;
    if (queue->newest != NULL)
        queue->newest->newer = aside;
    else
        queue->oldest = aside;
    queue->newest = aside;
    queue->count++;
    if (queue->next == NULL)
        queue->next = aside;
    if (!uv_is_active((uv_handle_t *)&queue->timer))
        arm(queue, aside->deadline_ms);
}

static void end_when_over(struct http_aside_queue *queue)
{
    if (queue->timer_closed && queue->count == 0)
        queue->over(queue->owner);
}

void http_aside_remove(struct http_aside *aside)
{
    struct http_aside_queue *queue = aside->queue;
    if (queue == NULL)
        return;
    aside->queue = NULL;
    if (queue->next == aside)
        queue->next = aside->newer;
    if (aside->newer != NULL)
        aside->newer->older = aside->older;
    else
        queue->newest = aside->older;
    if (aside->older != NULL)
        aside->older->newer = aside->newer;
    else
        queue->oldest = aside->newer;
    queue->count--;
    end_when_over(queue);
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct http_aside_queue *queue = timer->data;
    queue->timer_closed = true;
    end_when_over(queue);
}

void http_aside_queue_close(struct http_aside_queue *queue, void (*over)(void *owner), void *owner)
{
    for (const struct http_aside *aside = queue->oldest; aside != NULL; aside = aside->newer)
        CHECK(aside->request == NULL);
    CHECK(!queue->closed);
    queue->closed = true;
    queue->over = over;
    queue->owner = owner;
    uv_close((uv_handle_t *)&queue->timer, on_timer_closed);
}
