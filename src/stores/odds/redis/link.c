/*
 * The I/O thread of the Redis engine, and the commands that other threads send by it. See link.h.
 *
 * A call comes by mailbox and waits in a list until it may be sent. Then it stands among the sent
 * calls until its replies have come, and until it is settled if it wants that. At most SENT_MAX
 * calls are sent at a time, so that a heartbeat never waits long behind them. A sent call whose
 * deadline has passed ends at once; its struct link_sent stays until the replies come.
 *
 * `under_way` and `woken` are for any thread; all else belongs to the I/O thread.
 */
#include "stores/odds/redis/link.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/odds/redis/connection.h"

#define SENT_MAX 64
#define SECOND_MS 1000
#define NS_PER_MS ((uint64_t)1000000)
#define SETTLE_NS (100 * NS_PER_MS) /* a call may settle for so long, also after its deadline */

/* A sent call, until its replies have come and it is settled. */
struct link_sent {
    TAILQ_ENTRY(link_sent) others;
    struct redis_link *link;
    struct redis_call *call; /* NULL: it has ended before its replies */
    unsigned replies;
    uint64_t settled_by; /* the number of a PING; 0: replies are still to come */
};

struct redis_link {
    struct redis_link_options options;
    struct redis_connection *connection;
    uv_loop_t loop;
    struct mailbox *mailbox;
    uv_thread_t thread;
    struct mail stop;
    struct mail wake;
    atomic_bool woken;                /* the mail `wake` is posted */
    atomic_uint under_way;            /* calls */
    TAILQ_HEAD(, redis_call) waiting; /* to be sent; the oldest first, as below */
    TAILQ_HEAD(sent_list, link_sent) sent;
    size_t sent_count; /* of those whose replies have not come */
    uint64_t pings_sent, pings_answered;
    bool unsettled; /* replies have come that the next PING settles */
    uv_timer_t deadline;
    uint64_t deadline_ns; /* of the timer; 0: it does not run */
    uint64_t due_ns;      /* when the timer fired; 0: it has not, or its calls were ended */
    uv_check_t turn;
    uv_timer_t second, alarm;
    bool stopping;
};

static void start_timer(uv_timer_t *timer, uv_timer_cb callback, uint64_t delay_ms)
{
    clock_refresh_loop(timer->loop);
    CHECK(uv_timer_start(timer, callback, delay_ms, 0) == 0);
}

/* ---- the connection's standing --------------------------------------------------------------- */

enum status redis_link_now(const struct redis_link *link)
{
    return redis_connection_now(link->connection);
}

enum status redis_link_wait(struct redis_link *link, struct error *error)
{
    return redis_connection_wait(link->connection, error);
}

void redis_link_facts(const struct redis_link *link, struct odds_facts *facts)
{
    redis_connection_facts(link->connection, facts);
}

/* ---- the end of a call ----------------------------------------------------------------------- */

static void end_when_over(struct redis_link *link);
static void pump(struct redis_link *link);

static void finish(struct redis_link *link, struct redis_call *call, enum status status)
{
    (void)atomic_fetch_sub(&link->under_way, 1);
    call->done(call, status); /* from here on it is the caller's */
    end_when_over(link);
}

static void drop_sent(struct link_sent *sent)
{
    TAILQ_REMOVE(&sent->link->sent, sent, others);
    memory_free(sent);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *timer);

static void arm_deadline(struct redis_link *link, uint64_t deadline_ns)
{
    if (deadline_ns == 0 || (link->deadline_ns != 0 && link->deadline_ns <= deadline_ns))
        return;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    link->deadline_ns = deadline_ns;
    start_timer(&link->deadline, on_deadline, (left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || b_ns < a_ns ? b_ns : a_ns;
}

/* Calls end in on_turn, after the socket was read: replies that arrived while this thread could not
 * run come before the deadline. Until then the timer keeps the loop from sleeping. */
static void on_deadline(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    if (link->due_ns == 0)
        link->due_ns = clock_monotonic_ns();
    start_timer(&link->deadline, on_deadline, 1);
}

static void end_due_calls(struct redis_link *link)
{
    uint64_t due_ns = link->due_ns;
    uint64_t next_ns = 0;
    bool silent = false;
    link->due_ns = 0;
    link->deadline_ns = 0;
    CHECK(uv_timer_stop(&link->deadline) == 0);
    struct redis_call *newer;
    for (struct redis_call *call = TAILQ_FIRST(&link->waiting); call != NULL; call = newer) {
        newer = TAILQ_NEXT(call, others);
        if (call->deadline_ns > due_ns) {
            next_ns = earlier(next_ns, call->deadline_ns);
            continue;
        }
        TAILQ_REMOVE(&link->waiting, call, others);
        finish(link, call, STATUS_TIMEOUT);
    }
    struct link_sent *sent;
    TAILQ_FOREACH (sent, &link->sent, others) {
        struct redis_call *call = sent->call;
        if (call != NULL && call->deadline_ns > due_ns) {
            next_ns = earlier(next_ns, call->deadline_ns);
        } else if (call != NULL) {
            silent = true;
            sent->call = NULL;
            finish(link, call, STATUS_TIMEOUT);
        }
    }
    arm_deadline(link, next_ns);
    if (silent)
        redis_connection_silent(link->connection);
}

/* ---- settling -------------------------------------------------------------------------------- */

static void end_sent(struct link_sent *sent)
{
    struct redis_link *link = sent->link;
    struct redis_call *call = sent->call;
    drop_sent(sent);
    if (call != NULL)
        finish(link, call, STATUS_OK);
}

static void on_settled(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_link *link = context;
    struct link_sent *sent = TAILQ_FIRST(&link->sent);
    (void)index;
    (void)reply;
    link->pings_answered++;
    /* Replies come in the order of the calls, so the calls that wait for this PING come first. */
    while (sent != NULL && sent->settled_by != 0 && sent->settled_by <= link->pings_answered) {
        struct link_sent *next = TAILQ_NEXT(sent, others);
        end_sent(sent);
        sent = next;
    }
}

/* At the end of a turn of the loop. One PING at a time settles all calls whose replies came before
 * it was sent. */
static void settle(struct redis_link *link)
{
    static const struct text ping = TEXT_INIT("*1\r\n$4\r\nPING\r\n");
    if (!link->unsettled || link->pings_sent > link->pings_answered ||
        !redis_connection_is_up(link->connection))
        return;
    link->unsettled = false;
    link->pings_sent++;
    redis_connection_send(link->connection, ping, 1, on_settled, link);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void on_answer(void *context, unsigned index, const struct redis_reply *reply)
{
    struct link_sent *sent = context;
    struct redis_link *link = sent->link;
    struct redis_call *call = sent->call;
    bool last = index + 1 == sent->replies;
    if (call != NULL && call->reply != NULL)
        call->reply(call, index, reply);
    if (!last)
        return;
    link->sent_count--;
    if (call != NULL && call->settle) {
        uint64_t least_ns = clock_monotonic_ns() + SETTLE_NS;
        call->deadline_ns = call->deadline_ns < least_ns ? least_ns : call->deadline_ns;
        sent->settled_by = link->pings_sent + 1;
        link->unsettled = true;
    } else {
        end_sent(sent);
    }
    pump(link);
}

static void send_call(struct redis_link *link, struct redis_call *call)
{
    struct link_sent *sent = memory_alloc_zeroed(1, sizeof *sent);
    sent->link = link;
    sent->call = call;
    sent->replies = call->replies;
    TAILQ_INSERT_TAIL(&link->sent, sent, others);
    link->sent_count++;
    redis_connection_send(link->connection, call->bytes, call->replies, on_answer, sent);
    if (call->sent != NULL)
        call->sent(call);
}

/* Sends waiting calls, as many as may be sent now. */
static void pump(struct redis_link *link)
{
    struct redis_call *call;
    while (redis_connection_is_up(link->connection) && link->sent_count < SENT_MAX &&
           (call = TAILQ_FIRST(&link->waiting)) != NULL) {
        TAILQ_REMOVE(&link->waiting, call, others);
        send_call(link, call);
    }
}

/* The connection is lost. Calls that may be sent again wait again when there is hope; all others
 * end. */
static void lose_calls(struct redis_link *link, enum status status, bool hope)
{
    /* From the newest to the oldest, so that they keep their order. */
    struct link_sent *sent;
    TAILQ_FOREACH_REVERSE(sent, &link->sent, sent_list, others)
    {
        if (!hope || sent->call == NULL || !sent->call->again)
            continue;
        TAILQ_INSERT_HEAD(&link->waiting, sent->call, others);
        sent->call = NULL;
    }
    while ((sent = TAILQ_FIRST(&link->sent)) != NULL) {
        struct redis_call *call = sent->call;
        drop_sent(sent);
        if (call != NULL)
            finish(link, call, status);
    }
    link->sent_count = 0;
    link->unsettled = false;
    link->pings_answered = link->pings_sent;
    struct redis_call *call;
    while (!hope && (call = TAILQ_FIRST(&link->waiting)) != NULL) {
        TAILQ_REMOVE(&link->waiting, call, others);
        finish(link, call, status);
    }
}

static void on_call(struct mail *mail)
{
    struct redis_call *call = (struct redis_call *)mail;
    struct redis_link *link = call->link;
    enum status now = redis_link_now(link);
    if (now == STATUS_UNAVAILABLE || now == STATUS_TIMEOUT) {
        finish(link, call, now);
        return;
    }
    TAILQ_INSERT_TAIL(&link->waiting, call, others);
    arm_deadline(link, call->deadline_ns);
    pump(link);
}

enum status redis_link_submit(struct redis_link *link, struct redis_call *call)
{
    CHECK(call->replies > 0 && call->done != NULL && call->bytes.size > 0);
    enum status now = redis_link_now(link);
    if (now == STATUS_UNAVAILABLE || now == STATUS_TIMEOUT)
        return now;
    if (atomic_fetch_add(&link->under_way, 1) >= REDIS_CALLS_MAX) {
        (void)atomic_fetch_sub(&link->under_way, 1);
        return STATUS_FULL;
    }
    uint32_t timeout_ms = call->timeout_ms != 0 ? call->timeout_ms : link->options.timeout_ms;
    call->link = link;
    call->deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    call->mail.deliver = on_call;
    mailbox_post(link->mailbox, &call->mail);
    return STATUS_PENDING;
}

/* ---- why a call has failed ------------------------------------------------------------------- */

void redis_link_say(struct redis_link *link, enum status status, const char *what,
                    struct error *error)
{
    enum status now = redis_link_now(link);
    if (status == STATUS_FULL)
        (void)error_set(error, status, "%s: too many requests are waiting for the server", what);
    else if (now == STATUS_UNAVAILABLE || now == STATUS_TIMEOUT)
        redis_connection_problem(link->connection, error);
    else
        (void)error_set(error, status, "%s: %s", what,
                        status == STATUS_TIMEOUT ? "the server did not answer in time"
                                                 : "the connection was lost");
}

/* ---- a call that is waited for --------------------------------------------------------------- */

struct asking {
    uv_sem_t over;
    enum status status;
};

static void ask_done(struct redis_call *call, enum status status)
{
    struct asking *asking = call->asking;
    asking->status = status;
    uv_sem_post(&asking->over);
}

enum status redis_link_ask(struct redis_link *link, struct redis_call *call, const char *what,
                           struct error *error)
{
    struct asking asking;
    call->asking = &asking;
    call->done = ask_done;
    CHECK(uv_sem_init(&asking.over, 0) == 0);
    asking.status = redis_link_submit(link, call);
    if (asking.status == STATUS_PENDING)
        uv_sem_wait(&asking.over);
    if (asking.status != STATUS_OK)
        redis_link_say(link, asking.status, what, error);
    uv_sem_destroy(&asking.over);
    return asking.status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_second(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    if (link->stopping)
        return;
    if (link->options.second != NULL)
        link->options.second(link->options.owner);
    redis_connection_second(link->connection);
}

static void on_alarm(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    link->options.alarm(link->options.owner);
}

static void on_wake(struct mail *mail)
{
    struct redis_link *link = CONTAINER_OF(mail, struct redis_link, wake);
    atomic_store(&link->woken, false);
    if (link->options.woken != NULL)
        link->options.woken(link->options.owner);
}

void redis_link_wake(struct redis_link *link)
{
    if (!atomic_exchange(&link->woken, true))
        mailbox_post(link->mailbox, &link->wake);
}

void redis_link_set_alarm(struct redis_link *link, uint64_t at_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (!link->stopping)
        start_timer(&link->alarm, on_alarm, at_ns > now_ns ? (at_ns - now_ns) / NS_PER_MS : 0);
}

/* In each turn of the loop, after all sockets were read. */
static void on_turn(uv_check_t *turn)
{
    struct redis_link *link = turn->data;
    if (link->due_ns != 0)
        end_due_calls(link);
    settle(link);
    redis_connection_turn(link->connection);
}

static void make_timer(struct redis_link *link, uv_timer_t *timer)
{
    CHECK(uv_timer_init(&link->loop, timer) == 0);
    timer->data = link;
}

static void on_end(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    link->options.woken = NULL;
    redis_connection_stop(link->connection);
    lose_calls(link, STATUS_UNAVAILABLE, false); /* calls that have ended before their replies */
    uv_close((uv_handle_t *)&link->turn, NULL);
    uv_close((uv_handle_t *)&link->deadline, NULL);
    uv_close((uv_handle_t *)&link->second, NULL);
    uv_close((uv_handle_t *)&link->alarm, NULL);
    mailbox_destroy(&link->mailbox); /* the loop ends when all handles are closed */
}

/* By a timer, because a callback of a closed handle may be running. */
static void end_when_over(struct redis_link *link)
{
    if (link->stopping && atomic_load(&link->under_way) == 0)
        start_timer(&link->second, on_end, 0);
}

static void on_stop(struct mail *mail)
{
    struct redis_link *link =
        (struct redis_link *)(void *)((char *)mail - offsetof(struct redis_link, stop));
    if (link->options.closing != NULL)
        link->options.closing(link->options.owner);
    link->stopping = true;
    end_when_over(link);
}

static void run(void *argument)
{
    struct redis_link *link = argument;
    redis_connection_start(link->connection);
    CHECK(uv_run(&link->loop, UV_RUN_DEFAULT) == 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_up(void *owner)
{
    pump(owner);
}

static void on_lost(void *owner, enum status status, bool hope)
{
    lose_calls(owner, status, hope);
}

struct redis_link *redis_link_create(const struct redis_link_options *options)
{
    struct redis_link *made = memory_alloc_zeroed(1, sizeof *made);
    made->options = *options;
    TAILQ_INIT(&made->waiting);
    TAILQ_INIT(&made->sent);
    CHECK(uv_loop_init(&made->loop) == 0);
    made->mailbox = mailbox_create(&made->loop);
    made->wake.deliver = on_wake;
    const struct redis_connection_options of_connection = {.link = &made->options,
                                                           .loop = &made->loop,
                                                           .mailbox = made->mailbox,
                                                           .owner = made,
                                                           .up = on_up,
                                                           .lost = on_lost};
    made->connection = redis_connection_create(&of_connection);
    made->stop.deliver = on_stop;
    made->turn.data = made;
    CHECK(uv_check_init(&made->loop, &made->turn) == 0);
    CHECK(uv_check_start(&made->turn, on_turn) == 0);
    make_timer(made, &made->deadline);
    make_timer(made, &made->second);
    make_timer(made, &made->alarm);
    CHECK(uv_timer_start(&made->second, on_second, SECOND_MS, SECOND_MS) == 0);
    /* The thread takes no signals, so OpenSSL cannot raise SIGPIPE. */
    thread_start(&made->thread, "odds-redis", run, made);
    return made;
}

void redis_link_destroy(struct redis_link **link)
{
    struct redis_link *mine = *link;
    *link = NULL;
    if (mine == NULL)
        return;
    mailbox_post(mine->mailbox, &mine->stop);
    CHECK(uv_thread_join(&mine->thread) == 0);
    CHECK(uv_loop_close(&mine->loop) == 0);
    redis_connection_destroy(&mine->connection);
    memory_free(mine);
}
