/*
 * Two threads: the prober asks the stores, which may block; the watch sees to it that no request
 * waits for the prober longer than the deadline. Both do nothing while there are no requests.
 *
 * One lock guards everything in `struct health`. A pending request belongs to the list until it is
 * posted, then to the mailbox; both steps happen under the lock, so that a worker that gives a
 * pending request up knows which of the two it is. `pending->aside` is the worker's alone.
 */
#include "api/health.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/aside.h"

#define GRACE_MS 250
#define PENDING_MAX 65536

enum probe_state { PROBE_IDLE, PROBE_RUNNING, PROBE_LATE /* still running, its askers answered */ };
enum verdict { VERDICT_UNKNOWN, VERDICT_OK, VERDICT_DEGRADED };

struct pending_request {
    struct mail mail;
    struct health *health;
    struct http_aside aside;
    struct mailbox *mailbox;
    struct pending_request *next, *before; /* in the list */
    bool listed;
    bool ok;
};

struct health {
    struct health_options options;
    uint64_t deadline_ns;
    pthread_t prober;
    pthread_t watch;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t asked; /* somebody waits and no probe runs; or the end */
    pthread_cond_t begun; /* a probe runs; or it ended; or the end */
    struct pending_request *first;
    size_t pending_count;
    enum probe_state probe;
    uint64_t probe_started_ns;
    enum verdict verdict; /* the last one, for the log */
    struct error told;    /* the reason that the log has, while degraded */
    bool ending;

    struct platform_store *platform; /* the prober's; NULL: not open */
};

/* ---- answering, on the worker's thread ------------------------------------------------------- */

static void reply(struct http_request *request, bool ok)
{
    if (ok)
        http_reply_json(request, 200, TEXT("{\"status\":\"ok\",\"cache\":\"ok\"}"));
    else
        http_reply_json(request, 503, TEXT("{\"status\":\"degraded\",\"cache\":\"unreachable\"}"));
}

static void deliver(struct mail *mail)
{
    struct pending_request *pending =
        (struct pending_request *)(void *)((char *)mail - offsetof(struct pending_request, mail));
    struct http_request *request = http_aside_take(&pending->aside);
    if (request != NULL)
        reply(request, pending->ok);
    memory_free(pending);
}

/* ---- the list of pending requests (locked) --------------------------------------------------- */

static void list_add(struct health *health, struct pending_request *pending)
{
    pending->next = health->first;
    if (health->first != NULL)
        health->first->before = pending;
    health->first = pending;
    pending->listed = true;
    health->pending_count++;
}

static void list_remove(struct health *health, struct pending_request *pending)
{
    if (pending->before == NULL)
        health->first = pending->next;
    else
        pending->before->next = pending->next;
    if (pending->next != NULL)
        pending->next->before = pending->before;
    pending->listed = false;
    health->pending_count--;
}

static void answer_all(struct health *health, bool ok)
{
    while (health->first != NULL) {
        struct pending_request *pending = health->first;
        list_remove(health, pending);
        pending->ok = ok;
        mailbox_post(pending->mailbox, &pending->mail);
    }
}

/* ---- asking, on the worker's thread ---------------------------------------------------------- */

static void on_gone(struct http_aside *aside)
{
    struct pending_request *pending =
        (struct pending_request *)(void *)((char *)aside - offsetof(struct pending_request, aside));
    struct health *health = pending->health;
    CHECK(pthread_mutex_lock(&health->lock) == 0);
    bool listed = pending->listed;
    if (listed)
        list_remove(health, pending);
    CHECK(pthread_mutex_unlock(&health->lock) == 0);
    if (listed)
        memory_free(pending); /* else it is in the mailbox: its delivery frees it */
}

void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request)
{
    CHECK(pthread_mutex_lock(&health->lock) == 0);
    CHECK(!health->ending);
    bool refused = health->probe == PROBE_LATE || health->pending_count >= PENDING_MAX;
    if (!refused) {
        struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
        pending->mail.deliver = deliver;
        pending->health = health;
        pending->mailbox = mailbox;
        pending->aside.gone = on_gone;
        http_aside_put(&pending->aside, request);
        list_add(health, pending);
        CHECK(pthread_cond_signal(&health->asked) == 0);
    }
    CHECK(pthread_mutex_unlock(&health->lock) == 0);
    if (refused)
        reply(request, false);
}

/* ---- the prober ------------------------------------------------------------------------------ */

/* The handle is kept only while it answers, so that a store that comes back is found. */
static enum status ask_platform(struct health *health, struct error *error)
{
    enum status status = STATUS_OK;
    if (health->platform == NULL)
        status = platform_store_open(&health->platform, &health->options.platform, error);
    if (status != STATUS_OK)
        return status;
    status = platform_store_ping(health->platform, error);
    if (status != STATUS_OK)
        platform_store_close(&health->platform);
    return status;
}

static bool ask_both(struct health *health, struct error *reason)
{
    struct error error = {0};
    if (odds_store_ping(health->options.odds, ODDS_TO_READ, &error) != STATUS_OK)
        (void)error_set(reason, STATUS_UNAVAILABLE, "odds store: %s", error.text);
    else if (ask_platform(health, &error) != STATUS_OK)
        (void)error_set(reason, STATUS_UNAVAILABLE, "platform store: %s", error.text);
    else
        return true;
    return false;
}

/* Locked. Answers everybody; a change of the verdict or of its reason goes to the log, once, and
 * under the lock, so that the log tells the changes in the order they happened. */
static void conclude(struct health *health, bool ok, const char *reason)
{
    enum verdict before = health->verdict;
    health->verdict = ok ? VERDICT_OK : VERDICT_DEGRADED;
    if (!ok && (before != VERDICT_DEGRADED || strcmp(reason, health->told.text) != 0)) {
        log_event(health->options.log, LOG_WARNING, "health is degraded",
                  LOG_STRING("reason", reason));
        (void)error_set(&health->told, STATUS_UNAVAILABLE, "%s", reason);
    } else if (ok && before == VERDICT_DEGRADED)
        log_event(health->options.log, LOG_INFO, "health is ok again");
    answer_all(health, ok);
}

static void *probe_when_asked(void *argument)
{
    struct health *health = argument;
    (void)pthread_setname_np(pthread_self(), "health-prober");
    CHECK(pthread_mutex_lock(&health->lock) == 0);
    for (;;) {
        while (health->first == NULL && !health->ending)
            CHECK(pthread_cond_wait(&health->asked, &health->lock) == 0);
        if (health->ending)
            break;
        health->probe = PROBE_RUNNING;
        health->probe_started_ns = clock_monotonic_ns();
        CHECK(pthread_cond_signal(&health->begun) == 0);
        CHECK(pthread_mutex_unlock(&health->lock) == 0);
        struct error reason = {0};
        bool ok = ask_both(health, &reason);
        CHECK(pthread_mutex_lock(&health->lock) == 0);
        /* A late result answers no request; the next one gets a probe of its own. */
        if (health->probe == PROBE_RUNNING)
            conclude(health, ok, reason.text);
        health->probe = PROBE_IDLE;
        CHECK(pthread_cond_signal(&health->begun) == 0);
    }
    CHECK(pthread_mutex_unlock(&health->lock) == 0);
    platform_store_close(&health->platform);
    return NULL;
}

/* ---- the watch ------------------------------------------------------------------------------- */

static void *watch_the_prober(void *argument)
{
    struct health *health = argument;
    (void)pthread_setname_np(pthread_self(), "health-watch");
    CHECK(pthread_mutex_lock(&health->lock) == 0);
    while (!health->ending) {
        if (health->probe != PROBE_RUNNING) {
            CHECK(pthread_cond_wait(&health->begun, &health->lock) == 0);
            continue;
        }
        uint64_t until_ns = health->probe_started_ns + health->deadline_ns;
        if (clock_monotonic_ns() < until_ns) {
            struct timespec until = clock_timespec(until_ns);
            int result = pthread_cond_timedwait(&health->begun, &health->lock, &until);
            CHECK(result == 0 || result == ETIMEDOUT);
            continue;
        }
        health->probe = PROBE_LATE;
        conclude(health, false, "the stores did not answer in time");
    }
    CHECK(pthread_mutex_unlock(&health->lock) == 0);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(condition, &monotonic) == 0);
    CHECK(pthread_condattr_destroy(&monotonic) == 0);
}

struct health *health_create(const struct health_options *options)
{
    struct health *health = memory_alloc_zeroed(1, sizeof *health);
    CHECK(!options->platform.create);
    health->options = *options;
    uint64_t slower_ms = options->odds_timeout_ms > options->platform.timeout_ms
                             ? options->odds_timeout_ms
                             : options->platform.timeout_ms;
    health->deadline_ns = (slower_ms + GRACE_MS) * 1000000U;
    CHECK(pthread_mutex_init(&health->lock, NULL) == 0);
    make_condition(&health->asked);
    make_condition(&health->begun);
    /* Signals are for the main thread. */
    sigset_t all;
    sigset_t before;
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    CHECK(pthread_create(&health->prober, NULL, probe_when_asked, health) == 0);
    CHECK(pthread_create(&health->watch, NULL, watch_the_prober, health) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return health;
}

void health_destroy(struct health **health_at)
{
    struct health *health = *health_at;
    if (health == NULL)
        return;
    CHECK(pthread_mutex_lock(&health->lock) == 0);
    health->ending = true;
    answer_all(health, false);
    CHECK(pthread_cond_broadcast(&health->asked) == 0);
    CHECK(pthread_cond_broadcast(&health->begun) == 0);
    CHECK(pthread_mutex_unlock(&health->lock) == 0);
    CHECK(pthread_join(health->prober, NULL) == 0);
    CHECK(pthread_join(health->watch, NULL) == 0);
    CHECK(pthread_cond_destroy(&health->asked) == 0);
    CHECK(pthread_cond_destroy(&health->begun) == 0);
    CHECK(pthread_mutex_destroy(&health->lock) == 0);
    memory_free(health);
    *health_at = NULL;
}
