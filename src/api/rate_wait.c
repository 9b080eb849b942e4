/*
 * A waiter belongs to the desk's queue from when it is set aside until its mail has come; its request may
 * be answered (it took too long) or go away before.
 */
#include "api/rate_wait.h"

#include <stddef.h>

#include "admission/rate_limit.h"
#include "base/clock.h"
#include "base/memory.h"
#include "http/aside.h"

#define WAITERS_MAX 8192U

struct waiter {
    struct rate_waiter lease; /* first */
    struct rate_desk *desk;
    struct http_aside aside; /* no request: only the mail is awaited */
    struct rate_claim claim; /* holds the budget */
};

struct rate_desk {
    struct rate_desk_options options;
    struct http_aside_queue waiters;
};

static void drop_waiter(struct waiter *waiter)
{
    http_aside_remove(&waiter->aside); /* the desk may be over */
    rate_budget_release(&waiter->claim.budget);
    memory_free(waiter);
}

static void count(struct rate_desk *desk, const struct rate_verdict *verdict)
{
    if (verdict->alone)
        metrics_add(desk->options.metrics, METRICS_RATE_ALONE, 1);
}

/* Takes the request from the waiter and goes on with it. */
static void decide(struct waiter *waiter, const struct rate_verdict *verdict)
{
    const struct rate_desk_options *options = &waiter->desk->options;
    count(waiter->desk, verdict);
    options->decided(options->context, http_aside_take(&waiter->aside), verdict);
}

static void on_late(struct http_aside *aside)
{
    struct waiter *waiter =
        (struct waiter *)(void *)((char *)aside - offsetof(struct waiter, aside));
    struct rate_verdict verdict;
    if (aside->request == NULL)
        return;
    rate_lease_take_alone(&waiter->claim, clock_monotonic_ns(), &verdict);
    decide(waiter, &verdict); /* the waiter stays: only its mail takes it off the queue */
}

/* ---- waiting --------------------------------------------------------------------------------------- */

/* Its lease has come, or will not come. */
static void on_mail(struct mail *mail)
{
    struct waiter *waiter = (struct waiter *)(void *)mail;
    struct rate_verdict verdict;
    if (waiter->aside.request == NULL) {
        drop_waiter(waiter);
        return;
    }
    uint64_t now_ns = clock_monotonic_ns();
    enum status status = rate_lease_take(&waiter->claim, now_ns, &verdict);
    if (status == STATUS_PENDING) /* others have spent it */
        status = rate_lease_wait(&waiter->claim, now_ns, &waiter->lease, &verdict);
    if (status == STATUS_PENDING)
        return;
    decide(waiter, &verdict);
    drop_waiter(waiter);
}

/* True: decided after all. */
static bool wait_for_lease(struct rate_desk *desk, struct http_request *request,
                           const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict)
{
    if (desk->waiters.count >= WAITERS_MAX) {
        http_reply_error(request, HTTP_ERROR_OVERLOADED);
        return false;
    }
    struct waiter *waiter = memory_alloc_zeroed(1, sizeof *waiter);
    waiter->lease.mail.deliver = on_mail;
    waiter->lease.mailbox = desk->options.mailbox;
    waiter->desk = desk;
    waiter->claim = *claim;
    (void)rate_budget_hold(claim->budget);
    http_aside_append(&desk->waiters, &waiter->aside);
    if (rate_lease_wait(claim, now_ns, &waiter->lease, verdict) == STATUS_OK) {
        drop_waiter(waiter);
        count(desk, verdict);
        return true;
    }
    http_aside_put(&waiter->aside, request); /* its mail comes on this thread, after we return */
    metrics_add(desk->options.metrics, METRICS_RATE_WAITS, 1);
    return false;
}

bool rate_desk_take(struct rate_desk *desk, struct http_request *request,
                    const struct policy *policy, const struct address *client, int64_t now_wall_ms,
                    struct rate_verdict *verdict)
{
    CHECK(!desk->waiters.closed);
    if (desk->options.leases == NULL || !policy->rate.enabled) {
        rate_limit_take(policy, now_wall_ms, verdict);
        return true;
    }
    struct rate_claim claim = rate_claim_of(desk->options.leases, policy, client);
    uint64_t now_ns = clock_monotonic_ns();
    if (rate_lease_take(&claim, now_ns, verdict) != STATUS_OK)
        return wait_for_lease(desk, request, &claim, now_ns, verdict);
    count(desk, verdict);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------------ */

struct rate_desk *rate_desk_create(const struct rate_desk_options *options)
{
    struct rate_desk *desk = memory_alloc_zeroed(1, sizeof *desk);
    desk->options = *options;
    http_aside_queue_init(&desk->waiters, mailbox_loop(options->mailbox), options->timeout_ms,
                          on_late);
    return desk;
}

static void free_desk(void *desk)
{
    memory_free(desk);
}

void rate_desk_destroy(struct rate_desk **desk)
{
    struct rate_desk *mine = *desk;
    *desk = NULL;
    if (mine == NULL)
        return;
    http_aside_queue_close(&mine->waiters, free_desk, mine);
}
