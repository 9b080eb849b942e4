/*
 * A waiter belongs to the desk's list from when it is set aside until its mail has come; its request may
 * be answered (it took too long) or go away before. Waiters are in the order in which they came, so the
 * oldest is the first to be too late.
 */
#include "app/rate_desk.h"

#include "admission/rate_limit.h"
#include "base/clock.h"
#include "base/memory.h"

#define WAITERS_MAX 8192U

struct waiter {
    struct rate_waiter lease; /* first */
    struct rate_desk *desk;
    struct waiter *newer, *older;
    struct http_request *request; /* NULL: decided or gone; only the mail is awaited */
    struct rate_claim claim;      /* holds the budget */
    uint64_t deadline_ms;         /* of the loop's clock */
};

struct rate_desk {
    struct rate_desk_options options;
    size_t waiters;
    struct waiter *newest, *oldest;
    uv_timer_t deadline;
    bool closed, timer_closed;
};

static void free_desk_when_over(struct rate_desk *desk)
{
    if (desk->closed && desk->timer_closed && desk->waiters == 0)
        memory_free(desk);
}

static void drop_waiter(struct waiter *waiter)
{
    struct rate_desk *desk = waiter->desk;
    if (waiter->newer != NULL)
        waiter->newer->older = waiter->older;
    else
        desk->newest = waiter->older;
    if (waiter->older != NULL)
        waiter->older->newer = waiter->newer;
    else
        desk->oldest = waiter->newer;
    desk->waiters--;
    rate_budget_release(&waiter->claim.budget);
    memory_free(waiter);
    free_desk_when_over(desk);
}

static void on_abandoned(struct http_request *request)
{
    struct waiter *waiter = request->aside;
    waiter->request = NULL;
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
    struct http_request *request = waiter->request;
    waiter->request = NULL;
    request->abandoned = NULL;
    request->aside = NULL;
    count(waiter->desk, verdict);
    options->decided(options->context, request, verdict);
}

/* ---- too late -------------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *timer);

static void arm_deadline(struct rate_desk *desk, uint64_t deadline_ms)
{
    uint64_t now_ms = uv_now(desk->deadline.loop);
    CHECK(uv_timer_start(&desk->deadline, on_deadline,
                         deadline_ms > now_ms ? deadline_ms - now_ms : 0, 0) == 0);
}

static void on_deadline(uv_timer_t *timer)
{
    struct rate_desk *desk = timer->data;
    uint64_t now_ms = uv_now(timer->loop);
    for (struct waiter *waiter = desk->oldest; waiter != NULL; waiter = waiter->newer) {
        if (waiter->request == NULL)
            continue;
        if (waiter->deadline_ms > now_ms) {
            arm_deadline(desk, waiter->deadline_ms);
            return;
        }
        struct rate_verdict verdict;
        rate_lease_take_alone(&waiter->claim, clock_monotonic_ns(), &verdict);
        decide(waiter, &verdict); /* the waiter stays: only its mail takes it off the list */
    }
}

/* ---- waiting --------------------------------------------------------------------------------------- */

/* Its lease has come, or will not come. */
static void on_mail(struct mail *mail)
{
    struct waiter *waiter = (struct waiter *)(void *)mail;
    struct rate_verdict verdict;
    if (waiter->request == NULL) {
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

static void append(struct waiter *waiter)
{
    struct rate_desk *desk = waiter->desk;
    waiter->deadline_ms = uv_now(desk->deadline.loop) + desk->options.timeout_ms;
    waiter->older = desk->newest;
    if (desk->newest != NULL)
        desk->newest->newer = waiter;
    else
        desk->oldest = waiter;
    desk->newest = waiter;
    desk->waiters++;
    if (!uv_is_active((uv_handle_t *)&desk->deadline))
        arm_deadline(desk, waiter->deadline_ms);
}

/* True: decided after all. */
static bool wait_for_lease(struct rate_desk *desk, struct http_request *request,
                           const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict)
{
    if (desk->waiters >= WAITERS_MAX) {
        http_reply_error(request, HTTP_ERROR_OVERLOADED);
        return false;
    }
    struct waiter *waiter = memory_alloc_zeroed(1, sizeof *waiter);
    waiter->lease.mail.deliver = on_mail;
    waiter->lease.mailbox = desk->options.mailbox;
    waiter->desk = desk;
    waiter->claim = *claim;
    (void)rate_budget_hold(claim->budget);
    append(waiter);
    if (rate_lease_wait(claim, now_ns, &waiter->lease, verdict) == STATUS_OK) {
        drop_waiter(waiter);
        count(desk, verdict);
        return true;
    }
    waiter->request = request; /* its mail comes on this thread, so not before we return */
    request->abandoned = on_abandoned;
    request->aside = waiter;
    metrics_add(desk->options.metrics, METRICS_RATE_WAITS, 1);
    return false;
}

bool rate_desk_take(struct rate_desk *desk, struct http_request *request,
                    const struct policy *policy, const struct address *client, int64_t now_wall_ms,
                    struct rate_verdict *verdict)
{
    CHECK(!desk->closed);
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
    CHECK(uv_timer_init(mailbox_loop(options->mailbox), &desk->deadline) == 0);
    desk->deadline.data = desk;
    uv_unref((uv_handle_t *)&desk->deadline);
    return desk;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct rate_desk *desk = timer->data;
    desk->timer_closed = true;
    free_desk_when_over(desk);
}

void rate_desk_destroy(struct rate_desk **desk)
{
    struct rate_desk *mine = *desk;
    *desk = NULL;
    if (mine == NULL)
        return;
    for (const struct waiter *waiter = mine->oldest; waiter != NULL; waiter = waiter->newer)
        CHECK(waiter->request == NULL);
    mine->closed = true;
    uv_close((uv_handle_t *)&mine->deadline, on_timer_closed);
}
