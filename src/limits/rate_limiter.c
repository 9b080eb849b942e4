/*
 * A pending request is on the limiter's queue from its deferral until its mail is delivered. Before
 * that its request may be answered (it waited too long) or its client may close.
 */
#include "limits/rate_limiter.h"

#include "base/clock.h"
#include "base/memory.h"
#include "http/deferral.h"
#include "limits/rate_limit.h"

#define PENDING_MAX 8192U

enum { COUNTED_WAITS, COUNTED_ALONE };

struct pending_request {
    struct rate_pending lease; /* first */
    struct rate_limiter *limiter;
    struct http_deferral deferral; /* without a request, only the mail is awaited */
    struct rate_claim claim;       /* holds the budget */
};

struct rate_limiter {
    struct rate_limiter_options options;
    struct http_deferral_queue pending;
};

static void drop_pending(struct pending_request *pending)
{
    http_deferral_remove(&pending->deferral); /* this may free the limiter */
    rate_budget_release(&pending->claim.budget);
    memory_free(pending);
}

static void count(struct rate_limiter *limiter, const struct rate_verdict *verdict)
{
    if (verdict->alone)
        metrics_add(limiter->options.counters, COUNTED_ALONE, 1);
}

/* Takes the request off the deferral and reports the decision on it. */
static void decide(struct pending_request *pending, const struct rate_verdict *verdict)
{
    const struct rate_limiter_options *options = &pending->limiter->options;
    count(pending->limiter, verdict);
    options->decided(options->context, http_deferral_take(&pending->deferral), verdict);
}

static void on_late(struct http_deferral *deferral)
{
    struct pending_request *pending = CONTAINER_OF(deferral, struct pending_request, deferral);
    struct rate_verdict verdict;
    if (deferral->request == NULL)
        return;
    rate_lease_take_alone(&pending->claim, clock_monotonic_ns(), &verdict);
    decide(pending, &verdict); /* only the mail removes `pending` from the queue */
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Called when a lease has come or the call has failed. */
static void on_mail(struct mail *mail)
{
    struct pending_request *pending = (struct pending_request *)(void *)mail;
    struct rate_verdict verdict;
    if (pending->deferral.request == NULL) {
        drop_pending(pending);
        return;
    }
    uint64_t now_ns = clock_monotonic_ns();
    if (rate_lease_take(&pending->claim, now_ns, &pending->lease, &verdict) == STATUS_PENDING)
        return; /* other requests have spent the lease */
    decide(pending, &verdict);
    drop_pending(pending);
}

/* True: decided at once. */
static bool wait_for_lease(struct rate_limiter *limiter, struct http_request *request,
                           const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict)
{
    if (limiter->pending.count >= PENDING_MAX) {
        http_reply_error(request, &error_rates_full);
        return false;
    }
    struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
    pending->lease.mail.deliver = on_mail;
    pending->lease.mailbox = limiter->options.mailbox;
    pending->limiter = limiter;
    pending->claim = *claim;
    (void)rate_budget_hold(claim->budget);
    http_deferral_append(&limiter->pending, &pending->deferral);
    if (rate_lease_take(claim, now_ns, &pending->lease, verdict) == STATUS_OK) {
        drop_pending(pending);
        count(limiter, verdict);
        return true;
    }
    http_defer(&pending->deferral, request); /* this thread delivers the mail after we return */
    metrics_add(limiter->options.counters, COUNTED_WAITS, 1);
    return false;
}

bool rate_limiter_take(struct rate_limiter *limiter, struct http_request *request,
                       const struct rate_claim *claim, const char *client, int64_t now_wall_ms,
                       struct rate_verdict *verdict)
{
    CHECK(!limiter->pending.closed);
    if (limiter->options.leases == NULL || !claim->rate.enabled) {
        rate_limit_take(claim, now_wall_ms, verdict);
        return true;
    }
    rate_lease_prepare(limiter->options.leases, claim, client);
    uint64_t now_ns = clock_monotonic_ns();
    if (rate_lease_take(claim, now_ns, NULL, verdict) != STATUS_OK)
        return wait_for_lease(limiter, request, claim, now_ns, verdict);
    count(limiter, verdict);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct rate_limiter *rate_limiter_create(const struct rate_limiter_options *options)
{
    struct rate_limiter *limiter = memory_alloc_zeroed(1, sizeof *limiter);
    limiter->options = *options;
    http_deferral_queue_init(&limiter->pending, mailbox_loop(options->mailbox), options->timeout_ms,
                             on_late);
    return limiter;
}

void rate_limiter_destroy(struct rate_limiter **limiter)
{
    struct rate_limiter *mine = memory_take(limiter);
    if (mine == NULL)
        return;
    http_deferral_queue_close(&mine->pending, memory_free, mine);
}

const struct metric rate_limiter_metrics[] = {
    METRIC_COUNTED("croupier_rate_waits_total", COUNTED_WAITS),
    METRIC_COUNTED("croupier_rate_alone_total", COUNTED_ALONE),
    {0},
};
