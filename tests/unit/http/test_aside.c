/* http/aside: a request that waits is there once, and nobody waits longer than the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "http/aside.h"

#define LIMIT_MS 20
#define ASIDES 5

struct scene {
    uv_loop_t loop;
    uv_timer_t alive; /* a queue alone does not keep the loop going */
    struct http_aside_queue queue;
    struct http_request requests[ASIDES];
    struct http_aside asides[ASIDES];
    unsigned late[ASIDES];
    unsigned order[ASIDES];
    unsigned lates;
    uint64_t last_late_ms;
    struct http_aside *taken_with_the_first; /* also removed by the first one's `late` */
    unsigned gone, over;
};
static struct scene *scene;

static void on_late(struct http_aside *aside)
{
    size_t place = (size_t)(aside - scene->asides);
    scene->late[place]++;
    scene->order[scene->lates++] = (unsigned)place;
    scene->last_late_ms = uv_now(&scene->loop);
    if (scene->taken_with_the_first != NULL) {
        http_aside_remove(scene->taken_with_the_first);
        http_aside_remove(aside);
        scene->taken_with_the_first = NULL;
    }
}

static void on_gone(struct http_aside *aside)
{
    assert_null(aside->request);
    scene->gone++;
}

static void on_over(void *owner)
{
    assert_ptr_equal(owner, scene);
    scene->over++;
}

static void ring(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void run_for(uint64_t ms)
{
    assert_int_equal(uv_timer_start(&scene->alive, ring, ms, 0), 0);
    (void)uv_run(&scene->loop, UV_RUN_DEFAULT);
}

static int set_up(void **state)
{
    scene = memory_alloc_zeroed(1, sizeof *scene);
    *state = scene;
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    assert_int_equal(uv_timer_init(&scene->loop, &scene->alive), 0);
    http_aside_queue_init(&scene->queue, &scene->loop, LIMIT_MS, on_late);
    return 0;
}

static int tear_down(void **state)
{
    if (!scene->queue.closed) {
        while (scene->queue.oldest != NULL) {
            (void)http_aside_take(scene->queue.oldest);
            http_aside_remove(scene->queue.oldest);
        }
        http_aside_queue_close(&scene->queue, on_over, scene);
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
    http_aside_put(&scene->asides[place], &scene->requests[place]);
    http_aside_append(&scene->queue, &scene->asides[place]);
}

static void a_request_is_taken_back_once(void **state)
{
    (void)state;
    struct http_aside aside = {.gone = on_gone};
    struct http_request *request = &scene->requests[0];
    http_aside_put(&aside, request);
    assert_ptr_equal(http_aside_take(&aside), request);
    assert_null(http_aside_take(&aside));
    assert_null(request->abandoned); /* nobody is told any more */
    http_aside_put(&aside, request); /* and it can be set aside again */
    assert_ptr_equal(http_aside_take(&aside), request);
    assert_int_equal(scene->gone, 0);
}

static void a_client_that_goes_away_takes_its_request_along(void **state)
{
    (void)state;
    struct http_aside told = {.gone = on_gone};
    struct http_aside untold = {0};
    http_aside_put(&told, &scene->requests[0]);
    http_aside_put(&untold, &scene->requests[1]);
    scene->requests[0].abandoned(&scene->requests[0]);
    scene->requests[1].abandoned(&scene->requests[1]);
    assert_int_equal(scene->gone, 1);
    assert_null(http_aside_take(&told));
    assert_null(http_aside_take(&untold));
}

static void who_waits_too_long_is_late_once_and_in_order(void **state)
{
    (void)state;
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

static void who_was_removed_or_came_later_is_not_late(void **state)
{
    (void)state;
    put(0);
    put(1);
    put(2);
    http_aside_remove(&scene->asides[0]);
    http_aside_remove(&scene->asides[2]);
    http_aside_remove(&scene->asides[2]); /* it is off already */
    run_for(LIMIT_MS / 2);
    uint64_t later_ms = uv_now(&scene->loop);
    put(3);
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->lates, 2);
    assert_int_equal(scene->order[0], 1);
    assert_int_equal(scene->order[1], 3);
    assert_true(scene->last_late_ms >= later_ms + LIMIT_MS);
}

static void one_that_is_late_may_remove_the_next(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        put(i);
    scene->taken_with_the_first = &scene->asides[1];
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->lates, 2);
    assert_int_equal(scene->order[1], 2);
    assert_int_equal(scene->queue.count, 1);
    assert_ptr_equal(scene->queue.oldest, &scene->asides[2]);
    http_aside_append(&scene->queue, &scene->asides[1]); /* and it goes on */
    run_for((uint64_t)LIMIT_MS * 4);
    assert_int_equal(scene->late[1], 1);
}

static void a_closed_queue_is_over_when_the_last_one_is_off(void **state)
{
    (void)state;
    put(0);
    put(1);
    (void)http_aside_take(&scene->asides[0]);
    (void)http_aside_take(&scene->asides[1]);
    http_aside_queue_close(&scene->queue, on_over, scene);
    run_for((uint64_t)LIMIT_MS * 2);
    assert_int_equal(scene->lates, 0);
    assert_int_equal(scene->over, 0);
    http_aside_remove(&scene->asides[1]);
    assert_int_equal(scene->over, 0);
    http_aside_remove(&scene->asides[0]);
    assert_int_equal(scene->over, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_taken_back_once),
        TEST(a_client_that_goes_away_takes_its_request_along),
        TEST(who_waits_too_long_is_late_once_and_in_order),
        TEST(who_was_removed_or_came_later_is_not_late),
        TEST(one_that_is_late_may_remove_the_next),
        TEST(a_closed_queue_is_over_when_the_last_one_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
