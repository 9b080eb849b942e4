/*
 * The prober's thread asks the stores, which may block, and sleeps while there are no requests. The
 * worker's timer answers a request that would wait for the prober beyond the deadline.
 *
 * One lock guards what the two share. A pending request is on the list until its probe ends, then
 * with its worker's mailbox, which frees it. So it outlives its HTTP request, whose client may
 * close or be answered earlier.
 */
#include "api/health.h"

#include "api/error_rows.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define GRACE_MS 250
#define PENDING_MAX 65536

struct pending_request {
    struct mail mail; /* first */
    struct health *health;
    struct http_deferral deferral;
    struct mailbox *mailbox;
    bool ok;
};

struct health {
    struct odds_store *odds;
    uint32_t odds_timeout_ms;
    struct platform_store_options platform_options;
    struct background prober; /* its lock guards the fields below */
    struct mail_list requests;
    size_t pending_count;
    bool probing;        /* a probe runs */
    bool hung;           /* and a request has waited for it until its deadline */
    bool degraded;       /* the last verdict, for the log */
    struct error logged; /* its reason, while degraded */

    struct platform_store *platform; /* the prober's; NULL: not open */
};

/* ---- the verdict (locked) -------------------------------------------------------------------- */

/* Sets the verdict, and logs each change of it or of its reason once. It logs under the lock, so
 * that the log has the changes in order. */
static void set_verdict(struct health *health, bool ok, const struct error *reason)
{
    bool changed =
        ok ? health->degraded : !health->degraded || strcmp(reason->text, health->logged.text) != 0;
    if (changed && ok)
        log_event(health->platform_options.log, LOG_INFO, "health is ok again");
    else if (changed)
        log_event(health->platform_options.log, LOG_WARNING, "health is degraded",
                  LOG_STRING("reason", reason->text));
    health->degraded = !ok;
    health->logged = *reason;
}

static void answer_all(struct health *health, bool ok)
{
    while (!STAILQ_EMPTY(&health->requests)) {
        struct pending_request *pending =
            (struct pending_request *)(void *)STAILQ_FIRST(&health->requests);
        STAILQ_REMOVE_HEAD(&health->requests, link);
        pending->ok = ok;
        mailbox_post(pending->mailbox, &pending->mail);
    }
    health->pending_count = 0;
}

/* ---- asking and answering, on the worker's thread -------------------------------------------- */

static void reply(struct http_request *request, bool ok)
{
    const struct text text = ok ? TEXT("{\"status\":\"ok\",\"cache\":\"ok\"}")
                                : TEXT("{\"status\":\"degraded\",\"cache\":\"unreachable\"}");
    request->error = ok ? NULL : &error_health_degraded;
    http_reply_json(request, ok ? 200 : 503, text);
}

static void answer(struct http_deferral *deferral, bool ok)
{
    struct http_request *request = http_deferral_take(deferral);
    http_deferral_remove(deferral);
    if (request != NULL)
        reply(request, ok);
}

static void deliver(struct mail *mail)
{
    struct pending_request *pending = (struct pending_request *)(void *)mail;
    answer(&pending->deferral, pending->ok);
    memory_free(pending);
}

static void on_late(struct http_deferral *deferral)
{
    struct health *health = CONTAINER_OF(deferral, struct pending_request, deferral)->health;
    uv_mutex_lock(&health->prober.lock);
    health->hung = health->probing;
    set_verdict(health, false, &(struct error){"the stores did not answer in time"});
    uv_mutex_unlock(&health->prober.lock);
    answer(deferral, false);
}

void health_waits_init(struct health *health, struct http_deferral_queue *waits, uv_loop_t *loop)
{
    uint64_t slower_ms = health->odds_timeout_ms;
    if (slower_ms < health->platform_options.timeout_ms)
        slower_ms = health->platform_options.timeout_ms;
    http_deferral_queue_init(waits, loop, slower_ms + GRACE_MS, on_late);
}

void health_ask(struct health *health, struct http_deferral_queue *waits, struct mailbox *mailbox,
                struct http_request *request)
{
    uv_mutex_lock(&health->prober.lock);
    bool refused = health->hung || health->pending_count >= PENDING_MAX;
    if (!refused) {
        struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
        pending->mail.deliver = deliver;
        pending->health = health;
        pending->mailbox = mailbox;
        http_defer(&pending->deferral, request);
        http_deferral_append(waits, &pending->deferral);
        STAILQ_INSERT_TAIL(&health->requests, &pending->mail, link);
        health->pending_count++;
        uv_cond_signal(&health->prober.wake);
    }
    uv_mutex_unlock(&health->prober.lock);
    if (refused)
        reply(request, false);
}

/* ---- the prober ------------------------------------------------------------------------------ */

/* Keeps the handle only while the store answers, so that a store that recovers is opened again. */
static enum status ask_platform(struct health *health, struct error *error)
{
    enum status status = platform_store_open(&health->platform, &health->platform_options, error);
    if (status != STATUS_OK)
        return status;
    status = platform_store_ping(health->platform, error);
    if (status != STATUS_OK)
        platform_store_close(&health->platform);
    return status;
}

static bool ask_both(struct health *health, struct error *reason)
{
    bool odds = odds_store_ping(health->odds, ODDS_TO_READ, reason) == STATUS_OK;
    bool both = odds && ask_platform(health, reason) == STATUS_OK;
    if (!both)
        error_prefix(reason, odds ? "platform store" : "odds store");
    return both;
}

static void probe_when_asked(void *argument)
{
    struct health *health = argument;
    uv_mutex_lock(&health->prober.lock);
    while (!health->prober.stopping) {
        if (STAILQ_EMPTY(&health->requests)) {
            uv_cond_wait(&health->prober.wake, &health->prober.lock);
            continue;
        }
        health->probing = true;
        uv_mutex_unlock(&health->prober.lock);
        struct error reason = {0};
        bool ok = ask_both(health, &reason);
        uv_mutex_lock(&health->prober.lock);
        set_verdict(health, ok, &reason);
        answer_all(health, ok); /* also those that came during the probe */
        health->probing = health->hung = false;
    }
    answer_all(health, false);
    uv_mutex_unlock(&health->prober.lock);
    platform_store_close(&health->platform);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct health *health_create(struct odds_store *odds, uint32_t odds_timeout_ms,
                             const struct platform_store_options *platform)
{
    struct health *health = memory_alloc_zeroed(1, sizeof *health);
    CHECK(!platform->create);
    health->odds = odds;
    health->odds_timeout_ms = odds_timeout_ms;
    health->platform_options = *platform;
    STAILQ_INIT(&health->requests);
    background_start(&health->prober, "health-prober", probe_when_asked, health);
    return health;
}

void health_destroy(struct health **health)
{
    if (*health == NULL)
        return;
    background_stop(&(*health)->prober);
    memory_free(*health);
    *health = NULL;
}
