/* http/deferral: a request that waits is there once, and no one waits longer than the limit. */
#include "base/memory.h"
#include "http/deferral.h"
#include "test_clock.h"
#include "tests.h"

#define LIMIT_MS 20
#define ASIDES 5

struct scene {
    uv_loop_t loop;
    uv_timer_t alive; /* a queue alone does not keep the loop going */
    struct http_deferral_queue queue;
    struct http_request requests[ASIDES];
    struct http_deferral deferrals[ASIDES];
    unsigned late[ASIDES];
    unsigned order[ASIDES];
    unsigned lates;
    uint64_t last_late_ms;
    struct http_deferral *taken_with_the_first; /* also removed by the first one's `late` */
    unsigned gone, over;
};
static struct scene *scene;

static void on_late(struct http_deferral *deferral)
{
    size_t place = (size_t)(deferral - scene->deferrals);
    scene->late[place]++;
    scene->order[scene->lates++] = (unsigned)place;
    scene->last_late_ms = uv_now(&scene->loop);
    if (scene->taken_with_the_first != NULL) {
        http_deferral_remove(scene->taken_with_the_first);
        http_deferral_remove(deferral);
        scene->taken_with_the_first = NULL;
    }
}

static void on_gone(struct http_deferral *deferral)
{
    assert_null(deferral->request);
    scene->gone++;
}

static void on_over(void *owner)
{
    assert_ptr_equal(owner, scene);
    scene->over++;
}

static void ring(uv_timer_t *timer)
{
}

static void run_for(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i++) {
        test_clock_advance_ms(1);
        (void)uv_run(&scene->loop, UV_RUN_NOWAIT);
    }
}

static int set_up(void **state)
{
    test_clock_stop();
    scene = memory_alloc_zeroed(1, sizeof *scene);
    *state = scene;
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    assert_int_equal(uv_timer_init(&scene->loop, &scene->alive), 0);
    assert_int_equal(uv_timer_start(&scene->alive, ring, 1000000, 0), 0);
    http_deferral_queue_init(&scene->queue, &scene->loop, LIMIT_MS, on_late);
    return 0;
}

static int tear_down(void **state)
{
    if (!scene->queue.closed) {
        while (TAILQ_FIRST(&scene->queue.deferrals) != NULL) {
            (void)http_deferral_take(TAILQ_FIRST(&scene->queue.deferrals));
            http_deferral_remove(TAILQ_FIRST(&scene->queue.deferrals));
        }
        http_deferral_queue_close(&scene->queue, on_over, scene);
    }
    uv_close((uv_handle_t *)&scene->alive, NULL);
    (void)uv_run(&scene->loop, UV_RUN_DEFAULT);
    assert_int_equal(scene->over, 1);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    memory_free(scene);
    *state = NULL;
    return 0;
}

static void put(size_t place)
{
    http_defer(&scene->deferrals[place], &scene->requests[place]);
    http_deferral_append(&scene->queue, &scene->deferrals[place]);
}

TEST_WITH(a_request_is_taken_back_once, set_up, tear_down)
{
    struct http_deferral deferral = {.gone = on_gone};
    struct http_request *request = &scene->requests[0];
    http_defer(&deferral, request);
    assert_ptr_equal(http_deferral_take(&deferral), request);
    assert_null(http_deferral_take(&deferral));
    assert_null(request->abandoned); /* no one is told any more */
    http_defer(&deferral, request);  /* and it can be deferred again */
    assert_ptr_equal(http_deferral_take(&deferral), request);
    assert_int_equal(scene->gone, 0);
}

TEST_WITH(a_client_that_goes_away_takes_its_request_along, set_up, tear_down)
{
    struct http_deferral told = {.gone = on_gone};
    struct http_deferral untold = {0};
    http_defer(&told, &scene->requests[0]);
    http_defer(&untold, &scene->requests[1]);
    scene->requests[0].abandoned(&scene->requests[0]);
    scene->requests[1].abandoned(&scene->requests[1]);
    assert_int_equal(scene->gone, 1);
    assert_null(http_deferral_take(&told));
    assert_null(http_deferral_take(&untold));
}

TEST_WITH(who_waits_too_long_is_late_once_and_in_order, set_up, tear_down)
{
    uint64_t began_ms = uv_now(&scene->loop);
    for (size_t i = 0; i < ASIDES; i++)
        put(i);
    run_for(LIMIT_MS / 4);
    assert_int_equal(scene->lates, 0);
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->lates, ASIDES);
    assert_true(scene->last_late_ms >= began_ms + LIMIT_MS);
    for (unsigned i = 0; i < ASIDES; i++) {
        assert_int_equal(scene->late[i], 1);
        assert_int_equal(scene->order[i], i);
    }
    assert_int_equal(scene->queue.count, ASIDES); /* they stay until they are removed */
}

TEST_WITH(who_was_removed_or_came_later_is_not_late, set_up, tear_down)
{
    put(0);
    put(1);
    put(2);
    http_deferral_remove(&scene->deferrals[0]);
    http_deferral_remove(&scene->deferrals[2]);
    http_deferral_remove(&scene->deferrals[2]); /* it is off already */
    run_for(LIMIT_MS / 2);
    uint64_t later_ms = uv_now(&scene->loop);
    put(3);
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->lates, 2);
    assert_int_equal(scene->order[0], 1);
    assert_int_equal(scene->order[1], 3);
    assert_true(scene->last_late_ms >= later_ms + LIMIT_MS);
}

TEST_WITH(one_that_is_late_may_remove_the_next, set_up, tear_down)
{
    for (size_t i = 0; i < 3; i++)
        put(i);
    scene->taken_with_the_first = &scene->deferrals[1];
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->lates, 2);
    assert_int_equal(scene->order[1], 2);
    assert_int_equal(scene->queue.count, 1);
    assert_ptr_equal(TAILQ_FIRST(&scene->queue.deferrals), &scene->deferrals[2]);
    http_deferral_append(&scene->queue, &scene->deferrals[1]); /* and it goes on */
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->late[1], 1);
}

TEST_WITH(a_closed_queue_is_over_when_the_last_one_is_off, set_up, tear_down)
{
    put(0);
    put(1);
    (void)http_deferral_take(&scene->deferrals[0]);
    (void)http_deferral_take(&scene->deferrals[1]);
    http_deferral_queue_close(&scene->queue, on_over, scene);
    run_for((uint64_t)LIMIT_MS * 2);
    assert_int_equal(scene->lates, 0);
    assert_int_equal(scene->over, 0);
    http_deferral_remove(&scene->deferrals[1]);
    assert_int_equal(scene->over, 0);
    http_deferral_remove(&scene->deferrals[0]);
    assert_int_equal(scene->over, 1);
}
