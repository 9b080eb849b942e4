/*
 * The I/O thread of the Redis engine, and the commands that other threads send by it. See link.h.
 *
 * A call comes by mailbox and waits in a list until it may be sent. Then it stands among the sent
 * calls until its replies have come, and until it is settled if it wants that. At most SENT_MAX
 * calls are sent at a time, so that a heartbeat never waits long behind them.
 *
 * In a cluster, a call that was redirected waits again. The importer is a second connection, to the
 * node to which the slot is being moved; it is made when the first call is led there (ASK).
 *
 * `under_way` and `woken` are for any thread; all else belongs to the I/O thread.
 */
#include "stores/odds/redis/link.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/connection.h"

#define SENT_MAX 128
#define FIRST_WAIT_MS 3000       /* for the first attempt; a resolver may take longer */
#define FIRST_WAIT_MS_FEED 10000 /* a command that feeds has nothing else to do */
#define LATER_MS 10              /* until a call is sent again whose keys are on their way */
#define NS_PER_MS ((uint64_t)1000000)
#define SETTLE_NS (100 * NS_PER_MS) /* a call may settle for so long, also after its deadline */

static const struct text ping = TEXT_INIT("*1\r\n$4\r\nPING\r\n");

TAILQ_HEAD(call_list, redis_call); /* the oldest first */

struct redis_link {
    struct redis_link_options options;
    struct redis_connection *connection;
    struct redis_connection *importer; /* NULL: none was needed */
    struct redis_link_options importer_options;
    struct redis_location importer_location;
    uv_loop_t loop;
    struct mailbox *mailbox;
    uv_thread_t thread;
    struct mail stop;
    struct mail wake;
    atomic_bool woken;        /* the mail `wake` is posted */
    atomic_uint under_way;    /* calls */
    struct call_list waiting; /* to be sent */
    struct call_list sent;
    size_t sent_count;
    uv_timer_t deadline;
    uint64_t deadline_ns; /* of the timer; 0: it does not run */
    uint64_t due_ns;      /* when the timer fired; 0: it has not, or its calls were ended */
    uv_timer_t later;     /* until it fires, nothing is sent */
    uv_timer_t end;
    bool stopping;
};

/* ---- the connection's standing --------------------------------------------------------------- */

enum status redis_link_now(const struct redis_link *link)
{
    return redis_connection_now(link->connection);
}

bool redis_link_is_cluster(const struct redis_link *link)
{
    return redis_connection_is_cluster(link->connection);
}

bool redis_link_asks(const struct redis_link *link)
{
    return redis_connection_asks(link->connection);
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
    buffer_free(&call->kinds);
    call->done(call, status); /* from here on it is the caller's */
    end_when_over(link);
}

static void remove_sent(struct redis_link *link, struct redis_call *call)
{
    TAILQ_REMOVE(&link->sent, call, others);
    call->expected = NULL;
    link->sent_count--;
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
    clock_start_timer(&link->deadline, on_deadline, (left_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

/* Ends the calls of the list that are due. Returns whether there were any, and when the next one
 * is due. */
static bool end_due(struct redis_link *link, struct call_list *list, uint64_t due_ns,
                    uint64_t *next_ns)
{
    bool any = false;
    struct redis_call *newer;
    for (struct redis_call *call = TAILQ_FIRST(list); call != NULL; call = newer) {
        newer = TAILQ_NEXT(call, others);
        if (call->deadline_ns > due_ns) {
            *next_ns = *next_ns == 0 || call->deadline_ns < *next_ns ? call->deadline_ns : *next_ns;
            continue;
        }
        any = true;
        if (call->expected == NULL) {
            TAILQ_REMOVE(list, call, others);
        } else {
            redis_wire_ignore(call->expected);
            remove_sent(link, call);
        }
        finish(link, call, STATUS_TIMEOUT);
    }
    return any;
}

/* Due calls end when the timer fires for the second time. In between the loop reads the socket, so
 * replies that arrived while this thread could not run come before the deadline. */
static void on_deadline(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    uint64_t due_ns = link->due_ns;
    uint64_t next_ns = 0;
    if (due_ns == 0) {
        link->due_ns = clock_monotonic_ns();
        clock_start_timer(&link->deadline, on_deadline, 1, 0);
        return;
    }
    link->due_ns = 0;
    link->deadline_ns = 0;
    (void)end_due(link, &link->waiting, due_ns, &next_ns);
    bool silent = end_due(link, &link->sent, due_ns, &next_ns);
    arm_deadline(link, next_ns);
    if (silent)
        redis_connection_silent(link->connection);
    if (silent && link->importer != NULL)
        redis_connection_silent(link->importer);
    pump(link);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void end_sent(struct redis_call *call)
{
    struct redis_link *link = call->link;
    remove_sent(link, call);
    finish(link, call, STATUS_OK);
    pump(link);
}

static void on_settled(void *context, unsigned index, const struct redis_reply *reply)
{
    (void)index;
    (void)reply;
    end_sent(context);
}

static void note_redirect(struct redis_link *link, struct redis_call *call,
                          const struct redis_reply *reply);
static bool send_again(struct redis_link *link, struct redis_call *call);

static void on_answer(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_call *call = context;
    struct redis_link *link = call->link;
    bool last = index + 1 == call->replies;
    note_redirect(link, call, reply);
    if (call->reply != NULL && (call->redirect == REDIS_NOT_REDIRECTED || !call->again))
        call->reply(call, index, reply);
    if (!last || send_again(link, call))
        return;
    if (call->settle && !call->asked && !redis_link_asks(link)) {
        uint64_t least_ns = clock_monotonic_ns() + SETTLE_NS;
        call->deadline_ns = call->deadline_ns < least_ns ? least_ns : call->deadline_ns;
        call->expected = redis_connection_send(link->connection, ping, 1, on_settled, call);
    } else {
        end_sent(call);
    }
}

static void on_asked_answer(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_call *call = context;
    if (call->kinds.data[index] == 0)
        on_answer(call, call->came++, reply);
}

static void send_asked(struct redis_link *link, struct redis_call *call)
{
    struct buffer commands = {0};
    buffer_clear(&call->kinds);
    call->came = 0;
    redis_command_asking(&commands, &call->kinds, call->bytes);
    call->expected = redis_connection_send(link->importer, buffer_text(&commands),
                                           (unsigned)call->kinds.size, on_asked_answer, call);
    buffer_free(&commands);
}

/* It may be the one over which the server ended the connection, so it is sent alone. */
static bool is_suspect(const struct redis_call *call)
{
    return call->may_be_large && call->losses > 0;
}

/* The next call that may be sent now, or NULL. In a cluster, a link that feeds sends one at a time:
 * a later one must not be carried out before an earlier one that was redirected. */
static struct redis_call *next_call(const struct redis_link *link)
{
    bool in_order = !link->options.track && redis_link_is_cluster(link);
    struct redis_call *call;
    if (link->sent_count >= (in_order ? 1 : SENT_MAX) ||
        uv_is_active((const uv_handle_t *)&link->later) ||
        (link->sent_count == 1 && is_suspect(TAILQ_FIRST(&link->sent))))
        return NULL;
    TAILQ_FOREACH (call, &link->waiting, others)
        if (redis_connection_is_up(call->asked ? link->importer : link->connection))
            return is_suspect(call) && link->sent_count > 0 ? NULL : call;
        else if (in_order)
            return NULL;
    return NULL;
}

/* Sends waiting calls, as many as may be sent now. */
static void pump(struct redis_link *link)
{
    struct redis_call *call;
    while ((call = next_call(link)) != NULL) {
        TAILQ_REMOVE(&link->waiting, call, others);
        TAILQ_INSERT_TAIL(&link->sent, call, others);
        link->sent_count++;
        call->redirect = REDIS_NOT_REDIRECTED;
        if (call->asked)
            send_asked(link, call);
        else
            call->expected = redis_connection_send(link->connection, call->bytes, call->replies,
                                                   on_answer, call);
        if (call->sent != NULL)
            call->sent(call);
    }
}

/* ---- redirections ---------------------------------------------------------------------------- */

static void on_later(uv_timer_t *timer)
{
    pump(timer->data);
}

/* This serves either connection. */
static void on_up(void *owner)
{
    pump(owner);
}

/* The importer is lost. The calls that wait for it go to the master of the slot again, which may
 * name another node. */
static void lose_asked(void *owner, enum status status, bool hope)
{
    struct redis_link *link = owner;
    struct redis_call *call;
    struct redis_call *newer;
    (void)hope;
    clock_start_timer(&link->later, on_later, LATER_MS, 0);
    TAILQ_FOREACH (call, &link->waiting, others)
        call->asked = false;
    for (call = TAILQ_FIRST(&link->sent); call != NULL; call = newer) {
        newer = TAILQ_NEXT(call, others);
        if (!call->asked)
            continue;
        remove_sent(link, call);
        call->asked = false;
        if (call->again)
            TAILQ_INSERT_HEAD(&link->waiting, call, others);
        else
            finish(link, call, status);
    }
}

static void aim_importer(struct redis_link *link, const struct redis_host *host)
{
    const struct redis_connection_options options = {.link = &link->importer_options,
                                                     .loop = &link->loop,
                                                     .mailbox = link->mailbox,
                                                     .aimed = true,
                                                     .owner = link,
                                                     .up = on_up,
                                                     .lost = lose_asked};
    if (link->importer == NULL) {
        link->importer_location = *link->options.location;
        link->importer_options = link->options;
        link->importer_options.location = &link->importer_location;
        link->importer_options.track = false;
        link->importer_options.log = NULL;
        link->importer = redis_connection_create(&options);
        redis_connection_start(link->importer);
    }
    redis_connection_aim(link->importer, host);
}

/* Tries a command again a little later if the node that gets the slot redirects it. */
static void note_redirect(struct redis_link *link, struct redis_call *call,
                          const struct redis_reply *reply)
{
    struct redis_host host;
    enum redis_redirect redirect = REDIS_NOT_REDIRECTED;
    if (redis_link_is_cluster(link))
        redirect = redis_redirect_read(reply, redis_connection_host(link->connection), &host);
    call->redirected = redirect != REDIS_NOT_REDIRECTED;
    if (redirect != REDIS_NOT_REDIRECTED && call->asked)
        redirect = REDIS_LATER;
    if (redirect == REDIS_ASK)
        aim_importer(link, &host);
    if (redirect > call->redirect)
        call->redirect = redirect;
}

/* All replies have come. False: nothing is to be sent again. */
static bool send_again(struct redis_link *link, struct redis_call *call)
{
    enum redis_redirect redirect = call->redirect;
    bool again = call->more != NULL ? call->more(call, redirect)
                                    : redirect != REDIS_NOT_REDIRECTED && call->again;
    if (again) {
        remove_sent(link, call);
        call->asked = redirect == REDIS_ASK;
        TAILQ_INSERT_HEAD(&link->waiting, call, others);
    } else if (redirect == REDIS_MOVED) {
        end_sent(call);
    }
    if (again && redirect == REDIS_LATER)
        clock_start_timer(&link->later, on_later, LATER_MS, 0);
    if (redirect == REDIS_MOVED)
        redis_connection_moved(link->connection);
    else if (again)
        pump(link);
    return again || redirect == REDIS_MOVED;
}

/* The connection is lost. Calls that may be sent again wait again when there is hope; all others
 * end. */
static void lose_calls(void *owner, enum status status, bool hope)
{
    struct redis_link *link = owner;
    struct redis_call *call;
    struct redis_call *older;
    struct redis_call *newer;
    /* Moves them from the newest to the oldest, so that they keep their order. */
    for (call = TAILQ_LAST(&link->sent, call_list); call != NULL && hope; call = older) {
        older = TAILQ_PREV(call, call_list, others);
        if (!call->again || call->asked || (call->may_be_large && ++call->losses > 1))
            continue;
        remove_sent(link, call);
        TAILQ_INSERT_HEAD(&link->waiting, call, others);
    }
    for (call = TAILQ_FIRST(&link->sent); call != NULL; call = newer) {
        newer = TAILQ_NEXT(call, others);
        if (call->asked) /* the importer's */
            continue;
        remove_sent(link, call);
        finish(link, call, status);
    }
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
    call->expected = NULL;
    call->asked = false;
    call->kinds = (struct buffer){0};
    call->deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    call->mail.deliver = on_call;
    mailbox_post(link->mailbox, &call->mail);
    return STATUS_PENDING;
}

/* ---- why a call has failed ------------------------------------------------------------------- */

void redis_link_explain(struct redis_link *link, enum status status, const char *what,
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
    /* Once it is submitted, asking.status is the I/O thread's, which may be done already. */
    enum status status = redis_link_submit(link, call);
    if (status == STATUS_PENDING) {
        uv_sem_wait(&asking.over);
        status = asking.status;
    }
    if (status != STATUS_OK)
        redis_link_explain(link, status, what, error);
    uv_sem_destroy(&asking.over);
    call->asking = NULL;
    return status;
}

/* Before there is a connection, a call waits for the end of the first attempt. */
enum status redis_link_wait(struct redis_link *link, struct error *error)
{
    struct redis_call call = {.bytes = ping,
                              .replies = 1,
                              .timeout_ms =
                                  link->options.track ? FIRST_WAIT_MS : FIRST_WAIT_MS_FEED};
    return redis_link_ask(link, &call, "cannot connect to the odds store", error);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_wake(struct mail *mail)
{
    struct redis_link *link = CONTAINER_OF(mail, struct redis_link, wake);
    atomic_store(&link->woken, false);
    if (link->options.work != NULL && !link->stopping)
        link->options.work(link->options.owner);
}

void redis_link_wake(struct redis_link *link)
{
    if (!atomic_exchange(&link->woken, true))
        mailbox_post(link->mailbox, &link->wake);
}

static void on_end(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    redis_connection_stop(link->connection);
    if (link->importer != NULL)
        redis_connection_stop(link->importer);
    uv_close((uv_handle_t *)&link->deadline, NULL);
    uv_close((uv_handle_t *)&link->later, NULL);
    uv_close((uv_handle_t *)&link->end, NULL);
    mailbox_destroy(&link->mailbox); /* the loop ends when all handles are closed */
}

/* A timer does it, because a callback of a closed handle may be running. */
static void end_when_over(struct redis_link *link)
{
    if (link->stopping && atomic_load(&link->under_way) == 0)
        clock_start_timer(&link->end, on_end, 0, 0);
}

static void on_stop(struct mail *mail)
{
    struct redis_link *link = CONTAINER_OF(mail, struct redis_link, stop);
    if (link->options.work != NULL)
        link->options.work(link->options.owner); /* the last moment to submit a call */
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
                                                           .lost = lose_calls};
    made->connection = redis_connection_create(&of_connection);
    made->stop.deliver = on_stop;
    clock_make_timer(&made->loop, &made->deadline, made);
    clock_make_timer(&made->loop, &made->later, made);
    clock_make_timer(&made->loop, &made->end, made);
    /* It keeps the loop running until end_when_over sets it. */
    CHECK(uv_timer_start(&made->end, on_end, UINT64_MAX, 0) == 0);
    /* The thread takes no signals, so OpenSSL cannot raise SIGPIPE. */
    thread_start(&made->thread, "odds-redis", run, made);
    return made;
}

void redis_link_destroy(struct redis_link **link)
{
    struct redis_link *mine = memory_take(link);
    if (mine == NULL)
        return;
    mailbox_post(mine->mailbox, &mine->stop);
    CHECK(uv_thread_join(&mine->thread) == 0);
    CHECK(uv_loop_close(&mine->loop) == 0);
    redis_connection_destroy(&mine->connection);
    redis_connection_destroy(&mine->importer);
    memory_free(mine);
}
