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
    atomic_bool unconfirmed; /* the policies */
    atomic_int odds_pings;
    atomic_bool hang; /* the odds store's ping waits for `release` */
    sem_t entered;    /* posted when it hangs */
    sem_t release;
} stores;

enum status odds_store_ping(struct odds_store *store, enum odds_need need, struct error *error)
{
    assert_int_equal(need, ODDS_TO_READ);
    bool hang = atomic_load(&stores.hang); /* before it is counted: a test may wait for that */
    atomic_fetch_add(&stores.odds_pings, 1);
    if (hang) {
        assert_int_equal(sem_post(&stores.entered), 0);
        assert_int_equal(sem_wait(&stores.release), 0);
    }
    return error_set(error, (enum status)atomic_load(&stores.odds_status), "the odds are off");
}

bool refresher_is_confirmed(const struct refresher *refresher, uint64_t now_mono_ms)
{
    return !atomic_load(&stores.unconfirmed);
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
    uint64_t until = clock_monotonic_ms() + 10000;
    while (answers < count && clock_monotonic_ms() < until)
        (void)uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(answers, count);
}

static void ask(struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    health_ask(health, mailbox, &answer->request);
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
    health = health_create(&(struct health_options){.log = log_});
    return 0;
}

static int end(void **state)
{
    health_destroy(&health);
    if (health != NULL)
        return -1;
    mailbox_destroy(&mailbox);
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
    atomic_store(&stores.unconfirmed, true);
    ask(&answer);
    wait_for_answers(2);
    expect_degraded(&answer);
    expect_log("warning health is degraded reason=\"platform store: "); /* for another reason */
    ask(&answer);
    wait_for_answers(3);
    expect_degraded(&answer);
    expect_log(NULL); /* still degraded, and logged */

    atomic_store(&stores.unconfirmed, false);
    ask(&answer);
    wait_for_answers(4);
    expect_ok(&answer);
    expect_log("info health is ok again");

    atomic_store(&stores.unconfirmed, true);
    ask(&answer);
    wait_for_answers(5);
    expect_degraded(&answer);
    expect_log("reason=\"platform store: the policies cannot be refreshed\"");
}

TEST_WITH(requests_that_come_during_a_probe_share_the_next_one, begin, end)
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
    for (int i = 0; i < 100; i++)
        expect_ok(&some[i]);
    assert_int_equal(atomic_load(&stores.odds_pings), 2);
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
    expect_ok(&stays);
}

TEST_WITH(a_client_may_go_away_when_the_answer_is_under_way, begin, end)
{
    struct answer gone;
    struct answer next;
    ask(&gone);
    /* The next probe begins when the answer of the first is posted. */
    while (atomic_load(&stores.odds_pings) < 1)
        (void)sched_yield();
    atomic_store(&stores.hang, true);
    ask(&next);
    assert_int_equal(sem_wait(&stores.entered), 0);
    gone.request.abandoned(&gone.request);
    assert_int_equal(sem_post(&stores.release), 0);
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
