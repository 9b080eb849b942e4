/*
 * The I/O thread of the Redis engine, and the commands that others have it send. See odds_redis.h.
 *
 * A call comes by mailbox, waits in a list until it may be sent, then stands among the sent until
 * its replies have come. Only so many are sent at a time that a heartbeat never waits long behind
 * them. A sent call whose deadline has passed ends at once; its place among the sent stays until
 * its replies come.
 *
 * Who may touch what: the atomics any thread; `problem` and `first_over` under the lock; all else
 * is the I/O thread's.
 */
#include "stores/odds/redis/link.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define SENT_MAX 64
#define SECOND_MS 1000
#define NS_PER_MS ((uint64_t)1000000)
#define FIRST_WAIT_SECONDS 3       /* for the first attempt; a resolver may take longer */
#define FIRST_WAIT_SECONDS_FEED 10 /* who feeds has nothing else to do meanwhile */

struct link_sent {
    struct link_sent *next, *before;
    struct redis_link *link;
    struct redis_call *call; /* NULL: it did not wait */
    unsigned replies;
};

void link_start_timer(uv_timer_t *timer, uv_timer_cb callback, uint64_t delay_ms)
{
    clock_refresh_loop(timer->loop);
    CHECK(uv_timer_start(timer, callback, delay_ms, 0) == 0);
}

/* ---- standing -------------------------------------------------------------------------------- */

void link_set_standing(struct redis_link *link, enum link_standing standing)
{
    atomic_store(&link->standing, (int)standing);
}

void link_conclude(struct redis_link *link, const struct error *problem, bool over)
{
    uv_mutex_lock(&link->lock);
    if (problem != NULL)
        link->problem = *problem;
    link->first_over = link->first_over || over;
    uv_cond_broadcast(&link->concluded);
    uv_mutex_unlock(&link->lock);
}

enum status redis_link_now(const struct redis_link *link)
{
    uint64_t until_ns = atomic_load(&link->confirmed_until_ns);
    if (until_ns != 0 && clock_monotonic_ns() < until_ns)
        return STATUS_OK;
    switch ((enum link_standing)atomic_load(&link->standing)) {
    case STANDING_TRYING:
    case STANDING_UP:
        return STATUS_PENDING;
    case STANDING_SILENT:
        return STATUS_TIMEOUT;
    case STANDING_DOWN:
        break;
    }
    return STATUS_UNAVAILABLE;
}

void redis_link_problem(struct redis_link *link, struct error *error)
{
    if (error == NULL)
        return;
    uv_mutex_lock(&link->lock);
    *error = link->problem;
    uv_mutex_unlock(&link->lock);
}

enum status redis_link_wait(struct redis_link *link, struct error *error)
{
    uint64_t seconds = link->options.track ? FIRST_WAIT_SECONDS : FIRST_WAIT_SECONDS_FEED;
    uint64_t until_ns = clock_monotonic_ns() + seconds * 1000000000U;
    uv_mutex_lock(&link->lock);
    while (!link->first_over && condition_wait_until(&link->concluded, &link->lock, until_ns)) {
    }
    bool over = link->first_over;
    uv_mutex_unlock(&link->lock);
    enum status status = redis_link_now(link);
    if (!over && status != STATUS_UNAVAILABLE && status != STATUS_TIMEOUT)
        return error_set(error, STATUS_TIMEOUT, "the odds store at %s: connecting takes too long",
                         link->options.place->shown.data);
    if (status == STATUS_UNAVAILABLE || status == STATUS_TIMEOUT)
        redis_link_problem(link, error);
    return status;
}

void redis_link_facts(const struct redis_link *link, struct redis_link_facts *facts)
{
    *facts = (struct redis_link_facts){
        .connected = atomic_load(&link->standing) == (int)STANDING_UP,
        .connected_times = atomic_load(&link->connected_times),
        .invalidations = atomic_load(&link->invalidations),
        .round_trip_ns = atomic_load(&link->round_trip_ns),
    };
}

/* ---- the list of waiting calls --------------------------------------------------------------- */

static void add_newest(struct redis_link *link, struct redis_call *call)
{
    call->stage = REDIS_CALL_WAITING;
    call->newer = NULL;
    call->older = link->newest;
    if (link->newest != NULL)
        link->newest->newer = call;
    else
        link->oldest = call;
    link->newest = call;
}

static void add_oldest(struct redis_link *link, struct redis_call *call)
{
    call->stage = REDIS_CALL_WAITING;
    call->older = NULL;
    call->newer = link->oldest;
    if (link->oldest != NULL)
        link->oldest->older = call;
    else
        link->newest = call;
    link->oldest = call;
}

static void remove_waiting(struct redis_link *link, struct redis_call *call)
{
    if (call->newer != NULL)
        call->newer->older = call->older;
    else
        link->newest = call->older;
    if (call->older != NULL)
        call->older->newer = call->newer;
    else
        link->oldest = call->newer;
    call->newer = NULL;
    call->older = NULL;
}

/* ---- the end of a call ----------------------------------------------------------------------- */

static void end_when_over(struct redis_link *link);

static void finish(struct redis_link *link, struct redis_call *call, enum status status)
{
    call->stage = REDIS_CALL_IDLE;
    call->slot = NULL;
    (void)atomic_fetch_sub(&link->under_way, 1);
    call->done(call, status); /* from here on it is the caller's */
    end_when_over(link);
}

static void drop_sent(struct link_sent *sent)
{
    struct redis_link *link = sent->link;
    if (sent->before != NULL)
        sent->before->next = sent->next;
    else
        link->first_sent = sent->next;
    if (sent->next != NULL)
        sent->next->before = sent->before;
    else
        link->last_sent = sent->before;
    link->sent_count--;
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
    link_start_timer(&link->deadline, on_deadline, (left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || b_ns < a_ns ? b_ns : a_ns;
}

/* What came while this thread could not run is read before anything is over that was due then. A
 * timer alone does not see to that: libuv may run one that was started anew in the same pass,
 * before it looks at any connection. */
static bool has_read_since(struct redis_link *link)
{
    if (link->deadline_turn == 0) {
        link->deadline_turn = link->turns;
        link->due_ns = clock_monotonic_ns();
    }
    if (link->deadline_turn == link->turns) {
        link_start_timer(&link->deadline, on_deadline, 1);
        return false;
    }
    link->deadline_turn = 0;
    return true;
}

static void on_deadline(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    if (!has_read_since(link))
        return;
    uint64_t due_ns = link->due_ns;
    uint64_t next_ns = 0;
    link->deadline_ns = 0;
    struct redis_call *newer;
    for (struct redis_call *call = link->oldest; call != NULL; call = newer) {
        newer = call->newer;
        if (call->deadline_ns > due_ns) {
            next_ns = earlier(next_ns, call->deadline_ns);
            continue;
        }
        remove_waiting(link, call);
        finish(link, call, STATUS_TIMEOUT);
    }
    bool silent = false;
    for (struct link_sent *sent = link->first_sent; sent != NULL; sent = sent->next) {
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
    if (silent && !link->options.track)
        link_connect_silent(link);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void on_answer(void *context, unsigned index, const redisReply *reply)
{
    struct link_sent *sent = context;
    struct redis_link *link = sent->link;
    struct redis_call *call = sent->call;
    bool last = index + 1 == sent->replies;
    if (call != NULL && call->reply != NULL)
        call->reply(call, index, reply);
    if (!last)
        return;
    drop_sent(sent);
    if (call != NULL)
        finish(link, call, STATUS_OK);
    link_pump(link);
}

static void send_call(struct redis_link *link, struct redis_call *call)
{
    struct link_sent *sent = memory_alloc_zeroed(1, sizeof *sent);
    sent->link = link;
    sent->call = call;
    sent->replies = call->replies;
    sent->before = link->last_sent;
    if (link->last_sent != NULL)
        link->last_sent->next = sent;
    else
        link->first_sent = sent;
    link->last_sent = sent;
    link->sent_count++;
    call->stage = REDIS_CALL_SENT;
    call->slot = sent;
    redis_wire_send(link->data, call->bytes, call->replies, on_answer, sent);
    if (call->sent != NULL)
        call->sent(call);
}

void link_pump(struct redis_link *link)
{
    while (link->phase == LINK_UP && link->oldest != NULL && link->sent_count < SENT_MAX) {
        struct redis_call *call = link->oldest;
        remove_waiting(link, call);
        send_call(link, call);
    }
}

void link_calls_lost(struct redis_link *link, enum status status, bool hope)
{
    /* From the newest, so that those that wait again stand in their order before the others. */
    struct link_sent *before;
    for (struct link_sent *sent = link->last_sent; sent != NULL; sent = before) {
        before = sent->before;
        struct redis_call *call = sent->call;
        if (call == NULL)
            continue;
        if (hope && call->again) {
            sent->call = NULL;
            add_oldest(link, call);
        }
    }
    while (link->first_sent != NULL) {
        struct redis_call *call = link->first_sent->call;
        drop_sent(link->first_sent);
        if (call != NULL)
            finish(link, call, status);
    }
    while (!hope && link->oldest != NULL) {
        struct redis_call *call = link->oldest;
        remove_waiting(link, call);
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
    add_newest(link, call);
    arm_deadline(link, call->deadline_ns);
    link_pump(link);
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

/* ---- a call that is waited for --------------------------------------------------------------- */

struct asking {
    struct redis_call call; /* first; sent in place of the one that was given */
    struct redis_call *given;
    const char *what;
    uv_sem_t over;
    enum status status;
    enum status replied; /* of the first error reply; OK: there was none */
    struct error error;
};

static void ask_sent(struct redis_call *call)
{
    struct asking *asking = (struct asking *)call;
    if (asking->given->sent != NULL)
        asking->given->sent(asking->given);
}

static void heed_error(struct asking *asking, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR && asking->replied == STATUS_OK)
        asking->replied = redis_error_of_reply(reply, asking->what, &asking->error);
}

static void ask_reply(struct redis_call *call, unsigned index, const redisReply *reply)
{
    struct asking *asking = (struct asking *)call;
    heed_error(asking, reply);
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        heed_error(asking, reply->element[i]); /* of EXEC */
    if (asking->given->reply != NULL)
        asking->given->reply(asking->given, index, reply);
}

static void ask_done(struct redis_call *call, enum status status)
{
    struct asking *asking = (struct asking *)call;
    asking->status = status;
    uv_sem_post(&asking->over);
}

enum status redis_link_ask(struct redis_link *link, struct redis_call *call, const char *what,
                           struct error *error)
{
    struct asking asking = {.call = *call, .given = call, .what = what, .replied = STATUS_OK};
    asking.call.sent = ask_sent;
    asking.call.reply = ask_reply;
    asking.call.done = ask_done;
    CHECK(uv_sem_init(&asking.over, 0) == 0);
    enum status status = redis_link_submit(link, &asking.call);
    if (status == STATUS_PENDING) {
        uv_sem_wait(&asking.over);
        status = asking.status;
        if (status == STATUS_OK && asking.replied != STATUS_OK) {
            if (error != NULL)
                *error = asking.error;
            status = asking.replied;
        } else if (status != STATUS_OK) {
            (void)error_set(error, status, "%s: %s", what,
                            status == STATUS_TIMEOUT ? "the server did not answer in time"
                                                     : "the connection was lost");
        }
    } else if (status == STATUS_FULL) {
        (void)error_set(error, status, "%s: too many requests are waiting for the server", what);
    } else {
        redis_link_problem(link, error);
    }
    uv_sem_destroy(&asking.over);
    return status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_second(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    if (link->stopping)
        return;
    if (link->options.second != NULL)
        link->options.second(link->options.owner);
    link_connect_second(link);
}

static void on_alarm(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    link->options.alarm(link->options.owner);
}

void redis_link_set_alarm(struct redis_link *link, uint64_t at_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (!link->stopping)
        link_start_timer(&link->alarm, on_alarm, at_ns > now_ns ? (at_ns - now_ns) / NS_PER_MS : 0);
}

/* After all connections that had something were looked at. */
static void on_turn(uv_check_t *turn)
{
    struct redis_link *link = turn->data;
    link->turns++;
}

static void make_timer(struct redis_link *link, uv_timer_t *timer)
{
    CHECK(uv_timer_init(&link->loop, timer) == 0);
    timer->data = link;
}

static void on_end(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    link_connect_stop(link);
    link_calls_lost(link, STATUS_UNAVAILABLE, false); /* places of calls that did not wait */
    uv_close((uv_handle_t *)&link->turn, NULL);
    uv_close((uv_handle_t *)&link->deadline, NULL);
    uv_close((uv_handle_t *)&link->second, NULL);
    uv_close((uv_handle_t *)&link->alarm, NULL);
    mailbox_destroy(&link->mailbox); /* the loop ends when all that was closed is gone */
}

/* Not at once: this may be inside of a callback of what is closed. */
static void end_when_over(struct redis_link *link)
{
    if (link->stopping && atomic_load(&link->under_way) == 0)
        link_start_timer(&link->second, on_end, 0);
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
    link_connect_start(link);
    CHECK(uv_run(&link->loop, UV_RUN_DEFAULT) == 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status redis_link_create(struct redis_link **link, const struct redis_link_options *options,
                              struct error *error)
{
    struct redis_tls *tls = NULL;
    if (options->place->tls) {
        enum status status = redis_tls_create(&tls, options->place->tls_ca, error);
        if (status != STATUS_OK)
            return status;
    }
    struct redis_link *made = memory_alloc_zeroed(1, sizeof *made);
    made->options = *options;
    made->tls = tls;
    atomic_init(&made->standing, (int)STANDING_TRYING);
    CHECK(uv_mutex_init(&made->lock) == 0);
    CHECK(uv_cond_init(&made->concluded) == 0);
    CHECK(uv_loop_init(&made->loop) == 0);
    made->mailbox = mailbox_create(&made->loop);
    made->stop.deliver = on_stop;
    made->turns = 1;
    made->turn.data = made;
    CHECK(uv_check_init(&made->loop, &made->turn) == 0);
    CHECK(uv_check_start(&made->turn, on_turn) == 0);
    make_timer(made, &made->deadline);
    make_timer(made, &made->second);
    make_timer(made, &made->alarm);
    CHECK(uv_timer_start(&made->second, on_second, SECOND_MS, SECOND_MS) == 0);
    /* No signal reaches it: SIGPIPE neither, which hiredis does not keep off. */
    thread_start(&made->thread, "odds-redis", run, made);
    *link = made;
    return STATUS_OK;
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
    uv_cond_destroy(&mine->concluded);
    uv_mutex_destroy(&mine->lock);
    redis_tls_destroy(&mine->tls);
    memory_free(mine);
}
