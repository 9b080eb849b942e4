/* Leases of shared rate budgets. See contract.h. */
#include "contract.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LEASE_WINDOW 3600U

struct drawing {
    struct odds_lease lease; /* first */
    sem_t done;
};

static void lease_done(struct odds_lease *lease)
{
    CHECK(sem_post(&((struct drawing *)(void *)lease)->done) == 0);
}

/* Draws, and checks what every answer has to keep to. */
static struct odds_lease draw(struct odds_store *store, struct odds_lease lease)
{
    struct drawing drawing = {.lease = lease};
    drawing.lease.done = lease_done;
    CHECK(sem_init(&drawing.done, 0, 0) == 0);
    CHECK(odds_store_lease(store, &drawing.lease) == STATUS_PENDING);
    while (sem_wait(&drawing.done) != 0)
        CHECK(errno == EINTR);
    CHECK(sem_destroy(&drawing.done) == 0);
    struct odds_lease *answer = &drawing.lease;
    CHECK(answer->result == STATUS_OK);
    CHECK(answer->granted <= lease.limit && answer->left <= (int64_t)lease.limit);
    CHECK(answer->left_us > 0 && answer->left_us <= (uint64_t)lease.window_seconds * 1000000);
    int64_t end_ms = answer->store_ms + (int64_t)answer->left_us / 1000;
    int64_t off_ms = end_ms % ((int64_t)lease.window_seconds * 1000);
    CHECK(off_ms <= 1 || off_ms >= (int64_t)lease.window_seconds * 1000 - 1);
    CHECK(answer->start % lease.window_seconds == 0 || lease.window_seconds > LEASE_WINDOW);
    return *answer;
}

static struct odds_lease lease_of(const char *client, uint32_t limit)
{
    struct odds_lease lease = {.window_seconds = LEASE_WINDOW, .limit = limit, .demand = 1};
    (void)snprintf(lease.client, sizeof lease.client, "%s", client);
    return lease;
}

/* Leaves time for a test that draws in one window of an hour, and says whether there are leases. */
static bool lease_window_is_fresh(struct odds_store *store)
{
    if (!odds_store_has_leases(store))
        return false;
    struct odds_lease now = draw(store, lease_of("clock", 1));
    if (now.left_us < 20000000)
        (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(now.left_us / 1000000) + 1}, NULL);
    return true;
}

TEST_WITH(a_budget_is_drawn_to_the_last_in_a_few_leases, set_up, tear_down)
{
    static const uint32_t limits[] = {1, 2, 3, 5, 16, 17, 100, 1000, 1000000000};
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char client[16];
        (void)snprintf(client, sizeof client, "client-%zu", i);
        struct odds_lease answer = {.granted = 1};
        uint64_t sum = 0;
        unsigned calls = 0;
        for (; answer.granted > 0; calls++) {
            answer = draw(store, lease_of(client, limits[i]));
            sum += answer.granted;
            assert_int_equal(answer.left, limits[i] - sum);
            assert_true(answer.granted <= limits[i] / 16 + 1);
        }
        assert_int_equal(sum, limits[i]);
        assert_true(calls <= (limits[i] == 1000 ? 40 : 100));
    }
}

TEST_WITH(a_lease_covers_those_who_wait_if_it_can, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("many", 100);
    lease.demand = 60;
    assert_int_equal(draw(store, lease).granted, 60);
    assert_int_equal(draw(store, lease).granted, 40);
    assert_int_equal(draw(store, lease).granted, 0);
}

struct drawer {
    pthread_t thread;
    const struct fixture *fixture;
    uint64_t granted;
};

static void *draw_all(void *argument)
{
    struct drawer *drawer = argument;
    struct odds_store *store = open_store(drawer->fixture, false);
    struct odds_lease answer;
    do {
        answer = draw(store, lease_of("shared", 3000));
        drawer->granted += answer.granted;
    } while (answer.granted > 0);
    odds_store_close(&store);
    return NULL;
}

TEST_WITH(handles_that_draw_at_once_never_exceed_the_budget, set_up, tear_down)
{
    const struct fixture *fixture = *state;
    if (!lease_window_is_fresh(fixture->store))
        return;
    struct drawer drawers[4];
    uint64_t sum = 0;
    for (size_t i = 0; i < 4; i++) {
        drawers[i] = (struct drawer){.fixture = fixture};
        assert_int_equal(pthread_create(&drawers[i].thread, NULL, draw_all, &drawers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(drawers[i].thread, NULL), 0);
        sum += drawers[i].granted;
    }
    assert_int_equal(sum, 3000);
}

TEST_WITH(budgets_of_clients_are_kept_apart, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    assert_int_equal(draw(store, lease_of("cus_1", 1)).granted, 1);
    assert_int_equal(draw(store, lease_of("2001:db8::1", 1)).granted, 1);
    assert_int_equal(draw(store, lease_of("cus_1", 1)).granted, 0);
}

TEST_WITH(the_next_window_of_the_store_has_a_budget_of_its_own, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("short", 1);
    lease.window_seconds = 1;
    struct odds_lease first = draw(store, lease);
    assert_int_equal(first.granted, 1);
    struct odds_lease next = draw(store, lease);
    assert_true(next.granted == 0 || next.start > first.start);
    while (next.start == first.start) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        next = draw(store, lease);
    }
    assert_true(next.granted == 1 && next.start > first.start);
    assert_int_equal(next.start, next.store_ms / 1000);
}

TEST_WITH(a_changed_limit_counts_what_was_drawn, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("changed", 100);
    lease.demand = 50;
    assert_int_equal(draw(store, lease).granted, 50);
    lease.limit = 30;
    struct odds_lease answer = draw(store, lease);
    assert_true(answer.granted == 0 && answer.left == -20);
    lease.limit = 60;
    assert_int_equal(draw(store, lease).granted, 10);
}

TEST_WITH(a_window_made_longer_keeps_what_was_drawn, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("longer", 10);
    lease.demand = 10;
    assert_int_equal(draw(store, lease).granted, 10);
    lease.window_seconds = 86400;
    assert_int_equal(draw(store, lease).granted, 0);
}

TEST_WITH(what_a_server_knows_is_counted_in_that_window_alone, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("knows", 100);
    uint32_t start = draw(store, lease).start; /* 7 */
    lease.since = start;
    lease.since_used = 40; /* the store has forgotten */
    lease.since_spent = 9; /* and was away */
    assert_int_equal(draw(store, lease).left, 100 - 40 - 9 - 7);
    lease.since_used = 10; /* it knows better now */
    lease.since_spent = 0;
    assert_int_equal(draw(store, lease).left, 100 - 40 - 9 - 7 - 7);
    lease.since = start - LEASE_WINDOW;
    lease.since_used = 100;
    lease.since_spent = 100;
    assert_true(draw(store, lease).left > 20);
}
