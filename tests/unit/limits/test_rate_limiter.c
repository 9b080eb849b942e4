/* limits/rate_limiter: a request waits for its rate limit no longer than it has to, and is decided
 * once. */
#include "base/clock.h"
#include "base/memory.h"
#include "limits/rate_limit.h"
#include "limits/rate_limiter.h"
#include "stores/odds_engine.h"
#include "tests.h"

#define TIMEOUT_MS 30
#define REQUESTS 6

/* ---- a store that answers when it is told to ------------------------------------------------- */

struct fake {
    struct odds_store store; /* first */
    struct odds_lease *asked;
    enum status refusal;
    unsigned calls;
};

static enum status fake_lease(struct odds_store *store, struct odds_lease *lease)
{
    struct fake *fake = (struct fake *)store;
    fake->calls++;
    if (fake->refusal != STATUS_OK)
        return fake->refusal;
    assert_null(fake->asked);
    fake->asked = lease;
    return STATUS_PENDING;
}

static const struct odds_engine fake_engine = {.schemes = {"fake:"}, .lease = fake_lease};

static void answer(struct fake *fake, enum status result, uint32_t granted, uint32_t left)
{
    struct odds_lease *lease = fake->asked;
    assert_non_null(lease);
    fake->asked = NULL;
    lease->result = result;
    lease->granted = granted;
    lease->left = left;
    lease->start = 1763700000;
    lease->left_us = 60000000;
    lease->store_ms = 1763700000000;
    lease->answered_ns = clock_monotonic_ns();
    lease->done(lease);
}

/* ---- the limiter ----------------------------------------------------------------------------- */

struct scene {
    struct fake fake;
    uv_loop_t loop;
    uv_timer_t alive; /* a mailbox alone does not keep the loop going */
    struct mailbox *mailbox;
    metrics_cell counters[8];
    struct rate_leases *leases;
    struct rate_limiter *limiter;
    struct rate_budget *budget;
    struct rate_claim claim;
    struct http_request requests[REQUESTS];
    unsigned decided[REQUESTS];
    struct rate_verdict verdicts[REQUESTS];
};

static void on_decided(void *context, struct http_request *request,
                       const struct rate_verdict *verdict)
{
    struct scene *scene = context;
    size_t i = (size_t)(request - scene->requests);
    assert_null(request->abandoned);
    assert_null(request->deferral);
    scene->decided[i]++;
    scene->verdicts[i] = *verdict;
}

static void on_alive(uv_timer_t *timer)
{
}

static int set_up(void **state)
{
    struct scene *scene = memory_alloc_zeroed(1, sizeof *scene);
    scene->fake.store.engine = &fake_engine;
    CHECK(uv_loop_init(&scene->loop) == 0);
    CHECK(uv_timer_init(&scene->loop, &scene->alive) == 0);
    CHECK(uv_timer_start(&scene->alive, on_alive, 1, 1) == 0);
    scene->mailbox = mailbox_create(&scene->loop);
    scene->leases = rate_leases_create(&scene->fake.store, NULL);
    const struct rate_limiter_options options = {
        .leases = scene->leases,
        .mailbox = scene->mailbox,
        .counters = scene->counters,
        .timeout_ms = TIMEOUT_MS,
        .decided = on_decided,
        .context = scene,
    };
    scene->limiter = rate_limiter_create(&options);
    scene->budget = rate_budget_create();
    scene->claim = (struct rate_claim){{true, 100, 60}, scene->budget};
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    if (scene->fake.asked != NULL)
        answer(&scene->fake, STATUS_UNAVAILABLE, 0, 0);
    rate_leases_destroy(&scene->leases);
    rate_budget_release(&scene->budget);
    rate_limiter_destroy(&scene->limiter);
    uv_close((uv_handle_t *)&scene->alive, NULL);
    mailbox_destroy(&scene->mailbox);
    (void)uv_run(&scene->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&scene->loop) == 0);
    memory_free(scene);
    return 0;
}

static bool take(struct scene *scene, size_t i)
{
    return rate_limiter_take(scene->limiter, &scene->requests[i], &scene->claim,
                             "cus_0123456789abcdef", 1763700000000, &scene->verdicts[i]);
}

static void deliver(struct scene *scene)
{
    (void)uv_run(&scene->loop, UV_RUN_NOWAIT);
}

TEST_OF(scene, a_request_waits_for_its_lease)
{
    assert_false(take(scene, 0));
    deliver(scene);
    assert_int_equal(scene->decided[0], 0);
    answer(&scene->fake, STATUS_OK, 7, 93);
    deliver(scene);
    assert_int_equal(scene->decided[0], 1);
    assert_true(scene->verdicts[0].allowed);
    assert_int_equal(scene->verdicts[0].remaining, 99);
    assert_true(take(scene, 1)); /* there is a lease now */
    assert_int_equal(scene->verdicts[1].remaining, 98);
}

TEST_OF(scene, those_who_find_it_spent_wait_again)
{
    for (size_t i = 0; i < REQUESTS; i++)
        assert_false(take(scene, i));
    assert_int_equal(scene->fake.calls, 1);
    answer(&scene->fake, STATUS_OK, 4, 10);
    deliver(scene);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_int_equal(scene->decided[i], i < 4);
    answer(&scene->fake, STATUS_OK, 1, 0);
    deliver(scene);
    assert_int_equal(scene->decided[4] + scene->decided[5], 2);
    assert_int_equal(scene->verdicts[4].allowed + scene->verdicts[5].allowed, 1);
}

TEST_OF(scene, one_that_goes_away_is_forgotten)
{
    assert_false(take(scene, 0));
    assert_false(take(scene, 1));
    scene->requests[0].abandoned(&scene->requests[0]);
    answer(&scene->fake, STATUS_OK, 1, 99);
    deliver(scene);
    assert_int_equal(scene->decided[0], 0);
    assert_int_equal(scene->decided[1], 1);
    assert_true(scene->verdicts[1].allowed); /* nothing was spent for the other */
}

TEST_OF(scene, no_one_waits_longer_than_the_stores_deadline)
{
    uint64_t began_ms = clock_monotonic_ms();
    uv_update_time(&scene->loop); /* which the deadline counts from */
    assert_false(take(scene, 0));
    while (scene->decided[0] == 0 && clock_monotonic_ms() < began_ms + 60000)
        (void)uv_run(&scene->loop, UV_RUN_ONCE);
    assert_int_equal(scene->decided[0], 1);
    assert_true(clock_monotonic_ms() - began_ms + 2 >= TIMEOUT_MS);
    assert_true(scene->verdicts[0].allowed && scene->verdicts[0].alone);
    answer(&scene->fake, STATUS_OK, 7, 93);
    deliver(scene);
    assert_int_equal(scene->decided[0], 1);
}

TEST_OF(scene, when_the_store_is_away_no_one_waits)
{
    scene->fake.refusal = STATUS_UNAVAILABLE;
    (void)take(scene, 0);
    deliver(scene);
    assert_int_equal(scene->decided[0], 1);
    assert_true(scene->verdicts[0].allowed && scene->verdicts[0].alone);
    assert_true(take(scene, 1));
    assert_true(scene->verdicts[1].allowed && scene->verdicts[1].alone);
}

TEST_OF(scene, waiters_may_be_left_when_the_desk_goes)
{
    assert_false(take(scene, 0));
    assert_false(take(scene, 1));
    for (size_t i = 0; i < 2; i++)
        scene->requests[i].abandoned(&scene->requests[i]); /* and so to tear_down */
}
