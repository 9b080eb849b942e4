/*
 * limits/rate_lease: one budget for several servers. A `struct shop` is the store with its
 * clock; a `struct server` is one croupier: its handle, its budget. Our monotonic clock is a number
 * here.
 */
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/memory.h"
#include "limits/rate_lease.h"
#include "limits/rate_limit.h"
#include "stores/odds_engine.h"
#include "tests.h"

#define SECOND_NS 1000000000U
#define MINUTE_S 1763700000U /* a whole minute of the store's clock, in November 2025 */
#define NOW_NS (1000 * (uint64_t)SECOND_NS)

/* ---- the store ------------------------------------------------------------------------------- */

struct shop {
    pthread_mutex_t lock;
    uint64_t wall_us; /* its clock at NOW_NS of ours */
    uint32_t since;
    int64_t used;
};

struct server {
    struct odds_store store; /* first */
    struct shop *shop;
    pthread_mutex_t lock;
    struct odds_lease *asked; /* pending: one at a time, since there is one budget */
    enum status refusal;      /* what calls end in at once; OK: they are pending */
    uint32_t calls;
    struct rate_leases *leases;
    struct rate_budget *budget;
    struct rate_claim claim;
};

static enum status shop_lease(struct odds_store *store, struct odds_lease *lease)
{
    struct server *server = (struct server *)store;
    assert_int_equal(pthread_mutex_lock(&server->lock), 0);
    enum status status = server->refusal;
    server->calls++;
    if (status == STATUS_OK) {
        assert_null(server->asked);
        server->asked = lease;
        status = STATUS_PENDING;
    }
    assert_int_equal(pthread_mutex_unlock(&server->lock), 0);
    return status;
}

static const struct odds_engine shop_engine = {.schemes = {"shop:"}, .lease = shop_lease};

/* What the script in the real store does. */
static void draw(struct shop *shop, struct odds_lease *lease, uint64_t now_ns)
{
    uint64_t now_us = shop->wall_us + (now_ns - NOW_NS) / 1000;
    uint32_t second = (uint32_t)(now_us / 1000000);
    uint32_t start = second - second % lease->window_seconds;
    if (shop->since < start || shop->since > second + 2) {
        shop->since = start;
        shop->used = 0;
    }
    if (lease->since == shop->since) {
        shop->used = shop->used > lease->since_used ? shop->used : lease->since_used;
        shop->used += lease->since_spent;
    }
    int64_t left = (int64_t)lease->limit - shop->used;
    int64_t share = ((int64_t)lease->limit + 15) / 16;
    share = share < (left + 3) / 4 ? share : (left + 3) / 4;
    share = share > lease->demand ? share : lease->demand;
    share = share < left ? share : left;
    lease->granted = share > 0 ? (uint32_t)share : 0;
    shop->used += lease->granted;
    lease->left = left - lease->granted;
    lease->start = shop->since;
    lease->left_us = (start + (uint64_t)lease->window_seconds) * 1000000 - now_us;
    lease->store_ms = (int64_t)(now_us / 1000);
}

/* The call that is pending arrives at the store at `drawn_ns`, and its answer here at
 * `answered_ns`. */
static void answer_late(struct server *server, uint64_t drawn_ns, uint64_t answered_ns)
{
    struct odds_lease *lease = server->asked;
    assert_non_null(lease);
    server->asked = NULL;
    draw(server->shop, lease, drawn_ns);
    lease->answered_ns = answered_ns;
    lease->result = STATUS_OK;
    lease->done(lease);
}

static void answer(struct server *server, uint64_t now_ns)
{
    answer_late(server, now_ns, now_ns);
}

static void fail_call(struct server *server, enum status status, uint64_t now_ns)
{
    struct odds_lease *lease = server->asked;
    assert_non_null(lease);
    server->asked = NULL;
    lease->answered_ns = now_ns;
    lease->result = status;
    lease->done(lease);
}

/* ---- servers --------------------------------------------------------------------------------- */

static struct shop shop_at(uint32_t second)
{
    return (struct shop){.lock = PTHREAD_MUTEX_INITIALIZER, .wall_us = (uint64_t)second * 1000000};
}

#define SERVERS 3

/* One store, and the servers that a test opens at it. */
struct world {
    struct shop shop;
    struct server servers[SERVERS];
};

static void server_open(struct server *server, struct shop *shop, uint32_t requests,
                        uint32_t seconds)
{
    *server = (struct server){.store = {.engine = &shop_engine},
                              .shop = shop,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .budget = rate_budget_create()};
    server->leases = rate_leases_create(&server->store, NULL);
    server->claim = (struct rate_claim){{true, requests, seconds}, server->budget};
}

static void server_close(struct server *server)
{
    while (server->asked != NULL)
        fail_call(server, STATUS_UNAVAILABLE, NOW_NS);
    rate_leases_destroy(&server->leases);
    rate_budget_release(&server->budget);
}

static struct rate_claim claim_of(struct server *server)
{
    rate_lease_prepare(server->leases, &server->claim, "cus_0123456789abcdef");
    return server->claim;
}

static int set_up(void **state)
{
    struct world *world = memory_alloc_zeroed(1, sizeof *world);
    world->shop = shop_at(MINUTE_S);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < SERVERS; i++)
        server_close(&world->servers[i]);
    memory_free(world);
    return 0;
}

/* The next server of the world, with a budget of so many requests in so many seconds. */
static struct server *open_server(struct world *world, uint32_t requests, uint32_t seconds)
{
    struct server *server = world->servers;
    while (server->leases != NULL)
        server++;
    server_open(server, &world->shop, requests, seconds);
    return server;
}

/* A thread that can be sent mails. */
struct post {
    uv_loop_t loop;
    uv_timer_t alive; /* a mailbox alone does not keep the loop going */
    struct mailbox *mailbox;
};

static void never(uv_timer_t *timer)
{
}

static void post_open(struct post *post)
{
    CHECK(uv_loop_init(&post->loop) == 0);
    CHECK(uv_timer_init(&post->loop, &post->alive) == 0);
    CHECK(uv_timer_start(&post->alive, never, 3600000, 0) == 0);
    post->mailbox = mailbox_create(&post->loop);
}

static void post_deliver(struct post *post)
{
    (void)uv_run(&post->loop, UV_RUN_NOWAIT);
}

static void post_close(struct post *post)
{
    mailbox_destroy(&post->mailbox);
    uv_close((uv_handle_t *)&post->alive, NULL);
    (void)uv_run(&post->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&post->loop) == 0);
}

struct waiting {
    struct rate_pending pending; /* first */
    unsigned mails;
};

static void count_mail(struct mail *mail)
{
    ((struct waiting *)(void *)mail)->mails++;
}

/* Takes; when only the store knows, has it answer, and takes again. */
static struct rate_verdict take(struct server *server, uint64_t now_ns)
{
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    memset(&verdict, 0xAA, sizeof verdict);
    struct post post;
    post_open(&post);
    for (unsigned looks = 0; rate_lease_take(&claim, now_ns, NULL, &verdict) != STATUS_OK;
         looks++) {
        struct waiting waiting = {
            .pending = {.mail = {.deliver = count_mail}, .mailbox = post.mailbox}};
        assert_true(looks < 4);
        if (rate_lease_take(&claim, now_ns, &waiting.pending, &verdict) == STATUS_OK)
            break;
        if (server->asked != NULL)
            answer(server, now_ns);
        post_deliver(&post);
        assert_int_equal(waiting.mails, 1);
    }
    post_close(&post);
    return verdict;
}

/* Calls that were made in the background are answered at once. */
static void answer_all(struct server *server, uint64_t now_ns)
{
    while (server->asked != NULL)
        answer(server, now_ns);
}

static uint32_t take_all(struct server *server, uint64_t now_ns)
{
    uint32_t admitted = 0;
    while (take(server, now_ns).allowed) {
        admitted++;
        answer_all(server, now_ns);
    }
    return admitted;
}

/* ---- alone ----------------------------------------------------------------------------------- */

TEST(one_server_admits_exactly_the_budget)
{
    static const uint32_t budgets[] = {1, 2, 3, 4, 5, 7, 10, 16, 17, 60, 100, 999, 1000, 5000};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        struct shop shop = shop_at(MINUTE_S);
        struct server server;
        server_open(&server, &shop, budgets[i], 60);
        uint32_t remaining = budgets[i];
        for (uint32_t k = 0; k < budgets[i]; k++) {
            struct rate_verdict verdict = take(&server, NOW_NS + k);
            assert_true(verdict.limited && verdict.allowed && !verdict.alone);
            assert_int_equal(verdict.limit, budgets[i]);
            assert_int_equal(verdict.remaining, --remaining);
            answer_all(&server, NOW_NS + k);
        }
        for (int k = 0; k < 3; k++) {
            struct rate_verdict verdict = take(&server, NOW_NS + 2000000);
            assert_false(verdict.allowed);
            assert_int_equal(verdict.remaining, 0);
        }
        assert_int_equal(shop.used, budgets[i]);
        server_close(&server);
    }
}

TEST_OF(world, a_few_calls_do_for_a_thousand_requests)
{
    struct server *server = open_server(world, 1000, 60);
    for (uint32_t k = 0; k < 1000; k++) {
        assert_true(take(server, NOW_NS + k).allowed);
        answer_all(server, NOW_NS + k);
    }
    assert_true(server->calls <= 40);
}

TEST_OF(world, the_next_lease_comes_before_the_first_is_spent)
{
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS); /* a lease of 100 */
    for (int i = 0; i < 48; i++)
        (void)take(server, NOW_NS);
    assert_int_equal(server->calls, 1);
    (void)take(server, NOW_NS); /* the fiftieth */
    assert_int_equal(server->calls, 2);
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_OK);
        assert_true(verdict.allowed);
    }
    assert_int_equal(server->calls, 2); /* one at a time */
    assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_PENDING);
    answer(server, NOW_NS);
    assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_OK);
    assert_int_equal(verdict.remaining, 1600 - 101);
}

TEST_OF(world, what_is_left_of_a_lease_is_added_to_the_next)
{
    struct server *server = open_server(world, 1600, 60);
    for (int i = 0; i < 50; i++)
        (void)take(server, NOW_NS);
    answer(server, NOW_NS);
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    server->refusal = STATUS_UNAVAILABLE; /* nothing more comes */
    for (int i = 0; i < 150; i++) {
        assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_OK);
        assert_true(verdict.allowed && !verdict.alone);
    }
    assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_OK);
    assert_true(verdict.alone);
}

TEST_OF(world, a_used_up_window_is_remembered_without_a_call)
{
    world->shop = shop_at(1763701200);
    struct server *server = open_server(world, 3, 3600);
    for (int i = 0; i < 3; i++)
        assert_true(take(server, NOW_NS).allowed);
    answer_all(server, NOW_NS);
    assert_false(take(server, NOW_NS).allowed);
    uint32_t calls = server->calls;
    for (uint64_t i = 0; i < 3000; i++)
        assert_false(take(server, NOW_NS + i * SECOND_NS).allowed);
    assert_true(server->calls <= calls + 1);
}

/* ---- windows and clocks ---------------------------------------------------------------------- */

TEST_OF(world, the_stores_clock_decides_the_window)
{
    world->shop = shop_at(MINUTE_S + 45); /* whatever clock_wall_ms says here */
    struct server *server = open_server(world, 2, 60);
    assert_int_equal(take(server, NOW_NS).reset_seconds, 15);
    assert_int_equal(take(server, NOW_NS + 14 * (uint64_t)SECOND_NS).reset_seconds, 1);
    assert_false(take(server, NOW_NS + 14 * (uint64_t)SECOND_NS).allowed);
    assert_true(take(server, NOW_NS + 15 * (uint64_t)SECOND_NS).allowed);
    assert_int_equal(world->shop.since, MINUTE_S + 60);
}

TEST_OF(world, an_unspent_lease_is_void_in_the_next_window)
{
    world->shop = shop_at(MINUTE_S + 50);
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS);
    uint64_t paused_ns = NOW_NS + 10 * (uint64_t)SECOND_NS; /* the process was stopped */
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    assert_int_equal(rate_lease_take(&claim, paused_ns, NULL, &verdict), STATUS_PENDING);
    assert_int_equal(take_all(server, paused_ns), 1600);
}

TEST_OF(world, a_lease_that_arrives_after_its_window_is_void)
{
    world->shop = shop_at(MINUTE_S + 59);
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS);
    for (int i = 0; i < 49; i++)
        (void)take(server, NOW_NS);
    assert_non_null(server->asked);
    uint64_t next_ns = NOW_NS + SECOND_NS;
    answer_late(server, NOW_NS + SECOND_NS / 2, next_ns + SECOND_NS / 2);
    assert_int_equal(take_all(server, next_ns + SECOND_NS / 2), 1600);
}

TEST_OF(world, a_lease_is_spent_only_before_the_end_that_the_asking_allows)
{
    assert_true(rate_lease_deadline(7, 1000000) == 7 + 999000000); /* 0.1 % for clock rates */
    struct server *server = open_server(world, 1600, 1);
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    struct waiting waiting = {.pending = {.mail = {.deliver = count_mail}}};
    struct post post;
    post_open(&post);
    waiting.pending.mailbox = post.mailbox;
    assert_int_equal(rate_lease_take(&claim, NOW_NS, &waiting.pending, &verdict), STATUS_PENDING);
    /* It took 300 ms to get there, so at the store 1 s was left when here it was 1.3 s. */
    answer_late(server, NOW_NS, NOW_NS + 300000000);
    assert_int_equal(rate_lease_take(&claim, NOW_NS + 998999999, NULL, &verdict), STATUS_OK);
    assert_int_equal(rate_lease_take(&claim, NOW_NS + 999000000, NULL, &verdict), STATUS_PENDING);
    post_close(&post);
}

TEST_OF(world, a_long_window_is_confirmed_now_and_then)
{
    world->shop = shop_at(1763596800); /* midnight */
    struct server *server = open_server(world, 1600, 86400);
    (void)take(server, NOW_NS);
    uint64_t later_ns = NOW_NS + RATE_LEASE_TERM_NS;
    assert_true(take(server, later_ns - 1).allowed);
    assert_int_equal(server->calls, 1);
    world->shop.wall_us += 86400000000U; /* somebody has set the store's clock */
    assert_true(take(server, later_ns).allowed);
    assert_int_equal(server->calls, 2);
    assert_int_equal(world->shop.since, 1763596800 + 86400);
}

TEST_OF(world, seconds_left_are_rounded_up_and_at_least_one)
{
    struct server *server = open_server(world, 1600, 60);
    assert_int_equal(take(server, NOW_NS).reset_seconds, 60);
    assert_int_equal(take(server, NOW_NS + 1).reset_seconds, 60);
    assert_int_equal(take(server, NOW_NS + SECOND_NS + 1).reset_seconds, 59);
    assert_int_equal(take(server, NOW_NS + 59999999999).reset_seconds, 1);
}

/* ---- several servers ------------------------------------------------------------------------- */

TEST(servers_together_never_exceed_the_budget_and_use_all_of_it)
{
    for (uint32_t budget = 1; budget <= 3000; budget = budget * 3 + 1) {
        struct shop shop = shop_at(MINUTE_S);
        struct server servers[3];
        uint32_t admitted = 0;
        for (size_t i = 0; i < 3; i++)
            server_open(&servers[i], &shop, budget, 60);
        for (uint32_t k = 0; k < 4 * budget; k++) {
            struct server *server = &servers[k % 3];
            admitted += take(server, NOW_NS + k).allowed ? 1 : 0;
            answer_all(server, NOW_NS + k);
        }
        assert_int_equal(admitted, budget);
        for (size_t i = 0; i < 3; i++)
            server_close(&servers[i]);
    }
}

TEST_OF(world, little_is_stranded_with_a_server_that_goes_idle)
{
    struct server *busy = open_server(world, 1000, 60);
    struct server *idle = open_server(world, 1000, 60);
    (void)take(idle, NOW_NS);
    assert_true(take_all(busy, NOW_NS) >= 929);
}

/* ---- changed policies ------------------------------------------------------------------------ */

TEST_OF(world, a_raised_limit_holds_at_once)
{
    struct server *server = open_server(world, 10, 60);
    (void)take_all(server, NOW_NS);
    server->claim.rate.requests = 15;
    for (int i = 0; i < 5; i++) {
        assert_true(take(server, NOW_NS).allowed);
        answer_all(server, NOW_NS);
    }
    assert_false(take(server, NOW_NS).allowed);
}

TEST_OF(world, a_lowered_limit_voids_what_is_left_of_a_lease)
{
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS); /* 100 were drawn, one is spent */
    server->claim.rate.requests = 50;
    assert_false(take(server, NOW_NS).allowed);
}

TEST_OF(world, a_lowered_limit_above_what_was_drawn_keeps_the_lease)
{
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS);
    server->claim.rate.requests = 200;
    assert_int_equal(take_all(server, NOW_NS), 199);
}

TEST_OF(world, a_window_made_longer_keeps_the_count)
{
    world->shop = shop_at(MINUTE_S + 35);
    struct server *server = open_server(world, 4, 10);
    (void)take_all(server, NOW_NS);
    server->claim.rate.window_seconds = 60;
    struct rate_verdict verdict = take(server, NOW_NS);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.reset_seconds, 25);
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST_OF(world, all_who_wait_are_served_by_one_call)
{
    struct post post;
    struct waiting waiting[50] = {0};
    struct server *server = open_server(world, 1600, 60);
    post_open(&post);
    struct rate_claim claim = claim_of(server);
    struct rate_verdict verdict;
    for (size_t i = 0; i < 50; i++) {
        waiting[i].pending =
            (struct rate_pending){.mail = {.deliver = count_mail}, .mailbox = post.mailbox};
        assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_PENDING);
        assert_int_equal(rate_lease_take(&claim, NOW_NS, &waiting[i].pending, &verdict),
                         STATUS_PENDING);
    }
    assert_int_equal(server->calls, 1);
    answer(server, NOW_NS);
    post_deliver(&post);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(waiting[i].mails, 1);
        assert_int_equal(rate_lease_take(&claim, NOW_NS, NULL, &verdict), STATUS_OK);
        assert_true(verdict.allowed);
    }
    post_close(&post);
}

TEST_OF(world, a_budget_may_go_while_the_store_is_asked)
{
    struct server *server = open_server(world, 1600, 60);
    for (int i = 0; i < 50; i++)
        (void)take(server, NOW_NS);
    assert_non_null(server->asked);
    rate_budget_release(&server->budget); /* the customer was removed */
    answer(server, NOW_NS);
    rate_leases_destroy(&server->leases);
}

/* ---- without the store ----------------------------------------------------------------------- */

TEST_OF(world, without_the_store_a_server_limits_for_itself)
{
    struct server *server = open_server(world, 20, 1);
    server->refusal = STATUS_UNAVAILABLE;
    struct rate_verdict verdict = take(server, NOW_NS);
    assert_true(verdict.allowed && verdict.alone);
    assert_int_equal(verdict.remaining, 19);
    assert_int_equal(verdict.reset_seconds, 1);
    uint32_t calls = server->calls;
    for (int i = 0; i < 18; i++)
        assert_true(take(server, NOW_NS).allowed);
    assert_int_equal(server->calls, calls); /* not tried again at once */
}

TEST_OF(world, the_store_is_tried_again_and_no_one_waits_for_it)
{
    struct rate_verdict verdict;
    struct server *server = open_server(world, 1600, 60);
    server->refusal = STATUS_UNAVAILABLE;
    (void)take(server, NOW_NS);
    server->refusal = STATUS_OK;
    struct rate_claim claim = claim_of(server);
    uint64_t later_ns = NOW_NS + RATE_LEASE_RETRY_NS;
    assert_int_equal(rate_lease_take(&claim, later_ns - 1, NULL, &verdict), STATUS_OK);
    assert_null(server->asked);
    assert_int_equal(rate_lease_take(&claim, later_ns, NULL, &verdict), STATUS_OK);
    assert_true(verdict.allowed && verdict.alone);
    assert_non_null(server->asked);
    assert_int_equal(rate_lease_take(&claim, later_ns, NULL, &verdict), STATUS_OK); /* meanwhile */
    assert_true(verdict.alone);
    answer(server, later_ns);
    assert_int_equal(rate_lease_take(&claim, later_ns, NULL, &verdict), STATUS_OK);
    assert_false(verdict.alone);
}

TEST_OF(world, a_lease_is_spent_though_the_store_has_gone)
{
    struct server *server = open_server(world, 1600, 60);
    (void)take(server, NOW_NS);
    server->refusal = STATUS_UNAVAILABLE;
    for (int i = 0; i < 99; i++)
        assert_false(take(server, NOW_NS).alone);
    struct rate_verdict verdict = take(server, NOW_NS);
    assert_true(verdict.allowed && verdict.alone);
    assert_int_equal(verdict.remaining, 1600 - 101);
    assert_int_equal(verdict.reset_seconds, 60); /* the store's window */
}

TEST_OF(world, without_the_store_no_more_is_admitted_than_was_known_to_be_left)
{
    uint32_t admitted = 0;
    struct server *one = open_server(world, 1000, 60);
    struct server *other = open_server(world, 1000, 60);
    for (int i = 0; i < 600; i++) {
        admitted += take(one, NOW_NS).allowed ? 1 : 0;
        answer_all(one, NOW_NS);
    }
    admitted += take(other, NOW_NS).allowed ? 1 : 0;
    int64_t left = 1000 - world->shop.used;
    one->refusal = other->refusal = STATUS_TIMEOUT;
    admitted += take_all(one, NOW_NS) + take_all(other, NOW_NS);
    assert_true(admitted <= 1000 + left + 63);
    assert_true(admitted >= 1000);
    /* In the next window each has the whole budget. */
    assert_int_equal(take_all(one, NOW_NS + 60 * (uint64_t)SECOND_NS), 1000);
    assert_int_equal(take_all(other, NOW_NS + 60 * (uint64_t)SECOND_NS), 1000);
}

TEST_OF(world, the_store_is_told_what_was_admitted_without_it)
{
    struct server *one = open_server(world, 100, 60);
    struct server *other = open_server(world, 100, 60);
    assert_true(take(one, NOW_NS).allowed); /* 7 drawn */
    one->refusal = STATUS_UNAVAILABLE;
    for (int i = 0; i < 46; i++)
        assert_true(take(one, NOW_NS).allowed); /* 6 of the lease, 40 without it */
    one->refusal = STATUS_OK;
    uint64_t later_ns = NOW_NS + RATE_LEASE_RETRY_NS;
    assert_true(take(one, later_ns).allowed); /* it is asked again; 41 */
    assert_true(take(one, later_ns).allowed); /* 42: these two were too late to be told */
    answer(one, later_ns);
    assert_int_equal(world->shop.used, 7 + 40 + 7);
    uint32_t rest = take_all(one, later_ns) + take_all(other, later_ns);
    assert_int_equal(7 + 42 + rest, 100);
    assert_int_equal(world->shop.used, 100);
}

TEST_OF(world, a_store_that_forgot_is_told_what_was_drawn)
{
    uint32_t admitted = 0;
    struct server *server = open_server(world, 100, 60);
    for (int i = 0; i < 50; i++) {
        admitted += take(server, NOW_NS).allowed ? 1 : 0;
        answer_all(server, NOW_NS);
    }
    world->shop.since = 0; /* FLUSHALL */
    world->shop.used = 0;
    admitted += take_all(server, NOW_NS);
    assert_int_equal(admitted, 100);
}

TEST_OF(world, a_call_that_timed_out_is_counted_on_the_safe_side)
{
    struct odds_lease lost = {.window_seconds = 60, .limit = 100, .demand = 1};
    uint32_t admitted = 0;
    struct server *server = open_server(world, 100, 60);
    for (int i = 0; i < 4; i++)
        admitted += take(server, NOW_NS).allowed ? 1 : 0;
    assert_non_null(server->asked);
    draw(&world->shop, &lost, NOW_NS); /* the store granted it, and no one ever heard */
    fail_call(server, STATUS_TIMEOUT, NOW_NS);
    uint64_t later_ns = NOW_NS + RATE_LEASE_RETRY_NS;
    for (int i = 0; i < 3; i++) /* the rest of the lease; the first of them asks again */
        admitted += take(server, later_ns).allowed ? 1 : 0;
    answer_all(server, later_ns);
    admitted += take_all(server, later_ns);
    assert_true(admitted <= 100 && admitted >= 90);
}

TEST_OF(world, a_budget_that_the_store_cannot_keep_is_kept_here)
{
    struct server *server = open_server(world, 5, 3600);
    server->refusal = STATUS_MALFORMED;
    assert_int_equal(take_all(server, NOW_NS), 5);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define TAKERS 4
#define PARALLEL_BUDGET 20000

struct bench {
    struct server server;
    pthread_t answerer, takers[TAKERS];
    atomic_uint admitted, waited, refused;
    atomic_bool over;
};

static void *answer_calls(void *argument)
{
    struct bench *bench = argument;
    struct server *server = &bench->server;
    while (!atomic_load(&bench->over)) {
        assert_int_equal(pthread_mutex_lock(&server->lock), 0);
        struct odds_lease *lease = server->asked;
        server->asked = NULL;
        assert_int_equal(pthread_mutex_unlock(&server->lock), 0);
        if (lease == NULL) {
            (void)sched_yield();
            continue;
        }
        assert_int_equal(pthread_mutex_lock(&server->shop->lock), 0);
        draw(server->shop, lease, NOW_NS);
        assert_int_equal(pthread_mutex_unlock(&server->shop->lock), 0);
        lease->answered_ns = NOW_NS;
        lease->result = STATUS_OK;
        lease->done(lease);
    }
    return NULL;
}

static void *take_until_refused(void *argument)
{
    struct bench *bench = argument;
    struct rate_claim claim = claim_of(&bench->server);
    struct post post;
    struct rate_verdict verdict = {.allowed = true};
    post_open(&post);
    while (verdict.allowed) {
        struct waiting waiting = {
            .pending = {.mail = {.deliver = count_mail}, .mailbox = post.mailbox}};
        if (rate_lease_take(&claim, NOW_NS, NULL, &verdict) != STATUS_OK) {
            verdict.allowed = true;
            if (rate_lease_take(&claim, NOW_NS, &waiting.pending, &verdict) == STATUS_PENDING) {
                (void)atomic_fetch_add(&bench->waited, 1);
                while (waiting.mails == 0) {
                    post_deliver(&post);
                    (void)sched_yield();
                }
                continue;
            }
        }
        (void)atomic_fetch_add(verdict.allowed ? &bench->admitted : &bench->refused, 1);
    }
    post_close(&post);
    return NULL;
}

TEST(threads_and_servers_together_admit_exactly_the_budget)
{
    struct shop shop = shop_at(MINUTE_S);
    struct bench benches[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct bench *bench = &benches[i];
        server_open(&bench->server, &shop, PARALLEL_BUDGET, 60);
        assert_int_equal(pthread_create(&bench->answerer, NULL, answer_calls, bench), 0);
        for (size_t k = 0; k < TAKERS; k++)
            assert_int_equal(pthread_create(&bench->takers[k], NULL, take_until_refused, bench), 0);
    }
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < TAKERS; k++)
            assert_int_equal(pthread_join(benches[i].takers[k], NULL), 0);
    uint32_t admitted = 0;
    for (size_t i = 0; i < 2; i++) {
        admitted += atomic_load(&benches[i].admitted);
        assert_int_equal(atomic_load(&benches[i].refused), TAKERS);
        atomic_store(&benches[i].over, true);
        assert_int_equal(pthread_join(benches[i].answerer, NULL), 0);
        server_close(&benches[i].server);
    }
    assert_int_equal(admitted, PARALLEL_BUDGET);
}

/* libuv closes descriptors by a system call of its own, which ThreadSanitizer does not see: when
 * another thread's event loop is given the numbers of one that has gone, it takes them for
 * races. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:epoll_create1\nrace:uv_pipe\nrace:uv_async_init\nrace:eventfd\n";
}
