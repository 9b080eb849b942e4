/*
 * One thread asks the odds store, which may block; the policies already know whether the platform
 * store answers, because they ask it several times a second. The thread sleeps while there are no
 * requests.
 *
 * A pending request is on the list until a probe takes it, then with the prober, then with its
 * worker's mailbox, which frees it. If its client closes, it takes the same way and answers no
 * request.
 */
#include "api/health.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "http/deferral.h"

#define PENDING_MAX 65536

struct pending_request {
    struct mail mail; /* first */
    struct http_deferral deferral;
    struct mailbox *mailbox;
    bool ok;
};

struct health {
    struct health_options options;
    struct background prober;  /* its lock guards the two fields below */
    struct mail_list requests; /* for the next probe */
    size_t pending_count;
    /* the prober's own */
    bool degraded;       /* the last verdict, for the log */
    struct error logged; /* its reason, while degraded */
};

/* ---- asking and answering, on the worker's thread -------------------------------------------- */

static void deliver(struct mail *mail)
{
    struct pending_request *pending = (struct pending_request *)(void *)mail;
    struct http_request *request = http_deferral_take(&pending->deferral);
    if (request != NULL && pending->ok)
        http_reply_json(request, 200, TEXT("{\"status\":\"ok\",\"cache\":\"ok\"}"));
    else if (request != NULL)
        http_reply_json(request, 503, TEXT("{\"status\":\"degraded\",\"cache\":\"unreachable\"}"));
    memory_free(pending);
}

void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request)
{
    struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
    pending->mail.deliver = deliver;
    pending->mailbox = mailbox;
    http_defer(&pending->deferral, request);
    uv_mutex_lock(&health->prober.lock);
    bool taken = health->pending_count < PENDING_MAX;
    if (taken) {
        STAILQ_INSERT_TAIL(&health->requests, &pending->mail, link);
        health->pending_count++;
        uv_cond_signal(&health->prober.wake);
    }
    uv_mutex_unlock(&health->prober.lock);
    if (!taken)
        deliver(&pending->mail);
}

/* ---- the prober ------------------------------------------------------------------------------ */

static bool ask_both(const struct health *health, struct error *reason)
{
    if (odds_store_ping(health->options.odds, ODDS_TO_READ, reason) != STATUS_OK)
        error_prefix(reason, "odds store");
    else if (!refresher_is_confirmed(health->options.policies, clock_monotonic_ms()))
        (void)error_set(reason, STATUS_UNAVAILABLE,
                        "platform store: the policies cannot be refreshed");
    else
        return true;
    return false;
}

/* Logs each change of the verdict or its reason once. */
static void note_verdict(struct health *health, bool ok, const struct error *reason)
{
    bool news =
        ok ? health->degraded : !health->degraded || strcmp(reason->text, health->logged.text) != 0;
    if (news && ok)
        log_event(health->options.log, LOG_INFO, "health is ok again");
    else if (news)
        log_event(health->options.log, LOG_WARNING, "health is degraded",
                  LOG_STRING("reason", reason->text));
    health->degraded = !ok;
    health->logged = *reason;
}

static void answer_all(struct mail_list *asked, bool ok)
{
    while (!STAILQ_EMPTY(asked)) {
        struct pending_request *pending = (struct pending_request *)(void *)STAILQ_FIRST(asked);
        STAILQ_REMOVE_HEAD(asked, link);
        pending->ok = ok;
        mailbox_post(pending->mailbox, &pending->mail);
    }
}

static void probe_when_asked(void *argument)
{
    struct health *health = argument;
    struct background *prober = &health->prober;
    for (bool stopping = false; !stopping;) {
        struct mail_list asked = STAILQ_HEAD_INITIALIZER(asked);
        struct error reason = {.text = ""};
        uv_mutex_lock(&prober->lock);
        while (STAILQ_EMPTY(&health->requests) && !prober->stopping)
            uv_cond_wait(&prober->wake, &prober->lock);
        stopping = prober->stopping;
        STAILQ_CONCAT(&asked, &health->requests);
        health->pending_count = 0;
        uv_mutex_unlock(&prober->lock);
        bool ok = !stopping && ask_both(health, &reason);
        if (!stopping)
            note_verdict(health, ok, &reason);
        answer_all(&asked, ok);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct health *health_create(const struct health_options *options)
{
    struct health *health = memory_alloc_zeroed(1, sizeof *health);
    health->options = *options;
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
