/* api/health: against stores that answer, fail or hang on command. The functions of the stores and
 * of the HTTP layer that health calls are this file's own, so no store is needed. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/health.h"
#include "base/clock.h"
#include "tests.h"

/* ---- stores on command ----------------------------------------------------------------------- */

static struct {
    atomic_int odds_status;
    atomic_int open_status;
    atomic_int ping_status;
    atomic_int odds_pings;
    atomic_int opens;
    atomic_int closes;
    atomic_bool hang; /* the odds store's ping waits for `release` */
    sem_t entered;    /* posted when it hangs */
    sem_t release;
} stores;

enum status odds_store_ping(struct odds_store *store, enum odds_need need, struct error *error)
{
    assert_int_equal(need, ODDS_TO_READ);
    atomic_fetch_add(&stores.odds_pings, 1);
    if (atomic_load(&stores.hang)) {
        assert_int_equal(sem_post(&stores.entered), 0);
        assert_int_equal(sem_wait(&stores.release), 0);
    }
    return error_set(error, (enum status)atomic_load(&stores.odds_status), "the odds are off");
}

static int a_store;

enum status platform_store_open(struct platform_store **store,
                                const struct platform_store_options *options, struct error *error)
{
    assert_string_equal(options->uri, "sqlite:/x");
    if (*store != NULL)
        return STATUS_OK;
    atomic_fetch_add(&stores.opens, 1);
    if (atomic_load(&stores.open_status) == STATUS_OK)
        *store = (struct platform_store *)(void *)&a_store;
    return error_set(error, (enum status)atomic_load(&stores.open_status), "cannot be opened");
}

enum status platform_store_ping(struct platform_store *store, struct error *error)
{
    assert_non_null(store);
    return error_set(error, (enum status)atomic_load(&stores.ping_status), "does not answer");
}

void platform_store_close(struct platform_store **store)
{
    if (*store != NULL)
        atomic_fetch_add(&stores.closes, 1);
    *store = NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

struct answer {
    struct http_request request; /* first */
    int status;                  /* 0: not yet */
    char body[128];
};

static int answers;

void http_reply_json(struct http_request *request, int status, struct text body)
{
    struct answer *answer = (struct answer *)(void *)request;
    assert_int_equal(answer->status, 0);
    assert_null(request->abandoned);
    assert_null(request->deferral);
    answer->status = status;
    memcpy(answer->body, body.at, body.size);
    answers++;
}

/* ---- one worker ------------------------------------------------------------------------------ */

static uv_loop_t loop;
static struct mailbox *mailbox;
static struct http_deferral_queue waits;
static struct health *health;
static int log_pipe[2];
static struct log *log_;

static void on_tick(uv_timer_t *timer)
{
}

/* Runs the loop until `count` answers have come in all; at most ten seconds. */
static void wait_for_answers(int count)
{
    uv_timer_t tick;
    assert_int_equal(uv_timer_init(&loop, &tick), 0);
    assert_int_equal(uv_timer_start(&tick, on_tick, 1, 1), 0);
    uint64_t until = clock_monotonic_ms() + 60000;
    while (answers < count && clock_monotonic_ms() < until)
        (void)uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(answers, count);
}

static void ask(struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    health_ask(health, &waits, mailbox, &answer->request);
}

static void expect_log(const char *text)
{
    char lines[2048] = "";
    assert_true(log_flush(log_));
    ssize_t got = read(log_pipe[0], lines, sizeof lines - 1);
    if (text == NULL) {
        if (got > 0)
            fail_msg("logged: %s", lines);
        return;
    }
    if (got <= 0 || strstr(lines, text) == NULL)
        fail_msg("'%s' does not say '%s'", lines, text);
}

static int begin(void **state)
{
    memset(&stores, 0, sizeof stores);
    answers = 0;
    if (sem_init(&stores.entered, 0, 0) != 0 || sem_init(&stores.release, 0, 0) != 0 ||
        uv_loop_init(&loop) != 0 || pipe2(log_pipe, O_NONBLOCK) != 0)
        return -1;
    mailbox = mailbox_create(&loop);
    log_ = log_create(log_pipe[1], LOG_INFO, LOG_FORMAT_TEXT);
    const struct platform_store_options platform = {
        .uri = "sqlite:/x", .timeout_ms = 400, .log = log_};
    health = health_create(NULL, 200, &platform);
    health_waits_init(health, &waits, &loop);
    return 0;
}

static void on_waits_closed(void *context)
{
}

static int end(void **state)
{
    health_destroy(&health);
    if (health != NULL || atomic_load(&stores.opens) < atomic_load(&stores.closes))
        return -1;
    mailbox_destroy(&mailbox);
    http_deferral_queue_close(&waits, on_waits_closed, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    log_destroy(&log_);
    (void)close(log_pipe[0]);
    (void)close(log_pipe[1]);
    return uv_loop_close(&loop);
}

/* ---- specifications -------------------------------------------------------------------------- */

static void expect_ok(const struct answer *answer)
{
    assert_int_equal(answer->status, 200);
    assert_string_equal(answer->body, "{\"status\":\"ok\",\"cache\":\"ok\"}");
}

static void expect_degraded(const struct answer *answer)
{
    assert_int_equal(answer->status, 503);
    assert_string_equal(answer->body, "{\"status\":\"degraded\",\"cache\":\"unreachable\"}");
}

TEST_WITH(when_both_stores_answer_it_is_ok, begin, end)
{
    struct answer answer;
    ask(&answer);
    assert_int_equal(answer.status, 0); /* never inside ask */
    wait_for_answers(1);
    expect_ok(&answer);
    expect_log(NULL);
}

TEST_WITH(every_question_is_asked_anew, begin, end)
{
    struct answer answer;
    for (int i = 1; i <= 3; i++) {
        ask(&answer);
        wait_for_answers(i);
        expect_ok(&answer);
        assert_int_equal(atomic_load(&stores.odds_pings), i);
    }
    assert_int_equal(atomic_load(&stores.opens), 1);
}

TEST_WITH(one_store_that_fails_is_enough_to_be_degraded, begin, end)
{
    struct answer answer;
    atomic_store(&stores.odds_status, STATUS_UNAVAILABLE);
    ask(&answer);
    wait_for_answers(1);
    expect_degraded(&answer);
    expect_log("warning health is degraded reason=\"odds store: the odds are off\"");

    atomic_store(&stores.odds_status, STATUS_OK);
    atomic_store(&stores.open_status, STATUS_UNAVAILABLE);
    ask(&answer);
    wait_for_answers(2);
    expect_degraded(&answer);
    expect_log("warning health is degraded reason=\"platform store: "); /* for another reason */
    ask(&answer);
    wait_for_answers(3);
    expect_log(NULL); /* still degraded, and logged */

    atomic_store(&stores.open_status, STATUS_OK);
    atomic_store(&stores.ping_status, STATUS_TIMEOUT);
    ask(&answer);
    wait_for_answers(4);
    expect_degraded(&answer);

    atomic_store(&stores.ping_status, STATUS_OK);
    ask(&answer);
    wait_for_answers(5);
    expect_ok(&answer);
    expect_log("info health is ok again");

    atomic_store(&stores.ping_status, STATUS_UNAVAILABLE);
    ask(&answer);
    wait_for_answers(6);
    expect_degraded(&answer);
    expect_log("reason=\"platform store: does not answer\"");
}

TEST_WITH(askers_that_come_together_share_one_probe, begin, end)
{
    struct answer some[100];
    atomic_store(&stores.hang, true);
    ask(&some[0]);
    assert_int_equal(sem_wait(&stores.entered), 0);
    for (int i = 1; i < 100; i++)
        ask(&some[i]);
    atomic_store(&stores.hang, false);
    assert_int_equal(sem_post(&stores.release), 0);
    wait_for_answers(100);
    /* On a machine that sleeps here for half a second the probe is late, and that is
     * right. */
    if (some[0].status == 200)
        assert_int_equal(atomic_load(&stores.odds_pings), 1);
}

TEST_WITH(a_probe_that_hangs_holds_up_no_answer, begin, end)
{
    struct answer answer;
    atomic_store(&stores.hang, true);
    ask(&answer);
    assert_int_equal(sem_wait(&stores.entered), 0);
    wait_for_answers(1);
    expect_degraded(&answer);
    expect_log("reason=\"the stores did not answer in time\"");
    /* While it still hangs, the answer is known at once. */
    ask(&answer);
    expect_degraded(&answer);
    /* What it says in the end is no one's answer; the next question gets a probe of its own. */
    atomic_store(&stores.hang, false);
    assert_int_equal(sem_post(&stores.release), 0);
    for (int tries = 0; tries < 1000 && answer.status != 200; tries++) {
        ask(&answer);
        wait_for_answers(answers + (answer.status == 0 ? 1 : 0));
        (void)usleep(1000);
    }
    expect_ok(&answer);
    expect_log("info health is ok again");
}

TEST_WITH(a_client_that_goes_away_gets_no_answer, begin, end)
{
    struct answer gone;
    struct answer stays;
    atomic_store(&stores.hang, true);
    ask(&gone);
    assert_int_equal(sem_wait(&stores.entered), 0);
    ask(&stays);
    gone.request.abandoned(&gone.request); /* while the probe runs */
    atomic_store(&stores.hang, false);
    assert_int_equal(sem_post(&stores.release), 0);
    wait_for_answers(1);
    assert_int_equal(gone.status, 0);
    assert_int_not_equal(stays.status, 0);
}

TEST_WITH(a_client_may_go_away_when_the_answer_is_under_way, begin, end)
{
    struct answer gone;
    ask(&gone);
    /* The next probe only begins when the first one is over and its answer posted. */
    struct answer next;
    while (atomic_load(&stores.odds_pings) < 1)
        (void)usleep(100);
    (void)usleep(20000);
    gone.request.abandoned(&gone.request);
    ask(&next);
    wait_for_answers(1);
    assert_int_equal(gone.status, 0);
    expect_ok(&next);
}

TEST_WITH(who_waits_at_the_end_is_answered, begin, end)
{
    struct answer answer;
    atomic_store(&stores.hang, true);
    ask(&answer);
    assert_int_equal(sem_wait(&stores.entered), 0);
    assert_int_equal(sem_post(&stores.release), 0);
    health_destroy(&health);
    wait_for_answers(1);
    assert_int_not_equal(answer.status, 0);
}
