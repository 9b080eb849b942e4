/*
 * Two threads: the prober asks the stores, which may block; the watch answers requests that would
 * wait for the prober beyond the deadline. Both sleep while there are no requests.
 *
 * One lock guards everything in `struct health`. The list owns a pending request until it is
 * posted, then the mailbox owns it. Both steps happen under the lock, so that a worker that gives
 * up a pending request knows the owner. Only the worker uses `pending->deferral`.
 */
#include "api/health.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "http/deferral.h"

#define GRACE_MS 250
#define PENDING_MAX 65536

enum probe_state { PROBE_IDLE, PROBE_RUNNING, PROBE_LATE /* still running, requests answered */ };
enum verdict { VERDICT_UNKNOWN, VERDICT_OK, VERDICT_DEGRADED };

struct pending_request {
    struct mail mail;
    struct health *health;
    struct http_deferral deferral;
    struct mailbox *mailbox;
    LIST_ENTRY(pending_request) link; /* while it is listed */
    bool listed;
    bool ok;
};

struct health {
    struct health_options options;
    uint64_t deadline_ns;
    uv_thread_t prober;
    uv_thread_t watch;

    uv_mutex_t lock; /* guards everything below */
    uv_cond_t asked; /* a request waits and no probe runs; or the end */
    uv_cond_t begun; /* a probe runs; or it ended; or the end */
    LIST_HEAD(, pending_request) requests;
    size_t pending_count;
    enum probe_state probe;
    uint64_t probe_started_ns;
    enum verdict verdict; /* the last one, for the log */
    struct error logged;  /* the last reason in the log, while degraded */
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
    struct pending_request *pending = CONTAINER_OF(mail, struct pending_request, mail);
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request != NULL)
        reply(request, pending->ok);
    memory_free(pending);
}

/* ---- the list of pending requests (locked) --------------------------------------------------- */

static void list_remove(struct health *health, struct pending_request *pending)
{
    LIST_REMOVE(pending, link);
    pending->listed = false;
    health->pending_count--;
}

static void answer_all(struct health *health, bool ok)
{
    while (!LIST_EMPTY(&health->requests)) {
        struct pending_request *pending = LIST_FIRST(&health->requests);
        list_remove(health, pending);
        pending->ok = ok;
        mailbox_post(pending->mailbox, &pending->mail);
    }
}

/* ---- asking, on the worker's thread ---------------------------------------------------------- */

static void on_gone(struct http_deferral *deferral)
{
    struct pending_request *pending = CONTAINER_OF(deferral, struct pending_request, deferral);
    struct health *health = pending->health;
    uv_mutex_lock(&health->lock);
    bool listed = pending->listed;
    if (listed)
        list_remove(health, pending);
    uv_mutex_unlock(&health->lock);
    if (listed)
        memory_free(pending); /* else the mailbox owns it, and delivery frees it */
}

void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request)
{
    uv_mutex_lock(&health->lock);
    CHECK(!health->ending);
    bool refused = health->probe == PROBE_LATE || health->pending_count >= PENDING_MAX;
    if (!refused) {
        struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
        pending->mail.deliver = deliver;
        pending->health = health;
        pending->mailbox = mailbox;
        pending->deferral.gone = on_gone;
        http_defer(&pending->deferral, request);
        LIST_INSERT_HEAD(&health->requests, pending, link);
        pending->listed = true;
        health->pending_count++;
        uv_cond_signal(&health->asked);
    }
    uv_mutex_unlock(&health->lock);
    if (refused)
        reply(request, false);
}

/* ---- the prober ------------------------------------------------------------------------------ */

/* Keeps the handle only while the store answers, so that a store that recovers is opened again. */
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

/* Call with the lock held. Answers all requests. Logs each change of the verdict or its reason
 * once, under the lock, so that the log has the changes in order. */
static void conclude(struct health *health, bool ok, const char *reason)
{
    enum verdict before = health->verdict;
    health->verdict = ok ? VERDICT_OK : VERDICT_DEGRADED;
    if (!ok && (before != VERDICT_DEGRADED || strcmp(reason, health->logged.text) != 0)) {
        log_event(health->options.log, LOG_WARNING, "health is degraded",
                  LOG_STRING("reason", reason));
        (void)error_set(&health->logged, STATUS_UNAVAILABLE, "%s", reason);
    } else if (ok && before == VERDICT_DEGRADED)
        log_event(health->options.log, LOG_INFO, "health is ok again");
    answer_all(health, ok);
}

static void probe_when_asked(void *argument)
{
    struct health *health = argument;
    uv_mutex_lock(&health->lock);
    for (;;) {
        while (LIST_EMPTY(&health->requests) && !health->ending)
            uv_cond_wait(&health->asked, &health->lock);
        if (health->ending)
            break;
        health->probe = PROBE_RUNNING;
        health->probe_started_ns = clock_monotonic_ns();
        uv_cond_signal(&health->begun);
        uv_mutex_unlock(&health->lock);
        struct error reason = {0};
        bool ok = ask_both(health, &reason);
        uv_mutex_lock(&health->lock);
        /* A late result answers no request; the next request starts a new probe. */
        if (health->probe == PROBE_RUNNING)
            conclude(health, ok, reason.text);
        health->probe = PROBE_IDLE;
        uv_cond_signal(&health->begun);
    }
    uv_mutex_unlock(&health->lock);
    platform_store_close(&health->platform);
}

/* ---- the watch ------------------------------------------------------------------------------- */

static void watch_the_prober(void *argument)
{
    struct health *health = argument;
    uv_mutex_lock(&health->lock);
    while (!health->ending) {
        if (health->probe != PROBE_RUNNING) {
            uv_cond_wait(&health->begun, &health->lock);
            continue;
        }
        uint64_t until_ns = health->probe_started_ns + health->deadline_ns;
        if (condition_wait_until(&health->begun, &health->lock, until_ns))
            continue;
        health->probe = PROBE_LATE;
        conclude(health, false, "the stores did not answer in time");
    }
    uv_mutex_unlock(&health->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct health *health_create(const struct health_options *options)
{
    struct health *health = memory_alloc_zeroed(1, sizeof *health);
    CHECK(!options->platform.create);
    health->options = *options;
    uint64_t slower_ms = options->odds_timeout_ms > options->platform.timeout_ms
                             ? options->odds_timeout_ms
                             : options->platform.timeout_ms;
    health->deadline_ns = (slower_ms + GRACE_MS) * 1000000U;
    CHECK(uv_mutex_init(&health->lock) == 0);
    CHECK(uv_cond_init(&health->asked) == 0);
    CHECK(uv_cond_init(&health->begun) == 0);
    thread_start(&health->prober, "health-prober", probe_when_asked, health);
    thread_start(&health->watch, "health-watch", watch_the_prober, health);
    return health;
}

void health_destroy(struct health **health_at)
{
    struct health *health = *health_at;
    if (health == NULL)
        return;
    uv_mutex_lock(&health->lock);
    health->ending = true;
    answer_all(health, false);
    uv_cond_broadcast(&health->asked);
    uv_cond_broadcast(&health->begun);
    uv_mutex_unlock(&health->lock);
    CHECK(uv_thread_join(&health->prober) == 0);
    CHECK(uv_thread_join(&health->watch) == 0);
    uv_cond_destroy(&health->asked);
    uv_cond_destroy(&health->begun);
    uv_mutex_destroy(&health->lock);
    memory_free(health);
    *health_at = NULL;
}
