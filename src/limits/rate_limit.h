#pragma once

#include <uv.h>

#include "limits/client_limits.h"
#include "records/policy.h"

/*
 * The count of one client's current window (docs/interface.md, "Limits"). Windows are fixed and
 * aligned to the epoch: a window of 60 seconds begins with the minute, on every machine.
 *
 * Each customer or legacy address has one budget, and all snapshots of its policy point at it, so
 * that a refresh of the policies never resets the count.
 *
 * One 64-bit word holds the start of the window, in seconds since the epoch (high half), and the
 * requests seen in it (low half), so that one compare-and-swap both starts a window and counts. The
 * count stops at its maximum; requests that are refused count too.
 *
 * Clocks: a thread reads the time a little before it counts, so its time may lie in the old window
 * when another thread has started the next; the request counts in the next. If the clock is set
 * back by more than RATE_LIMIT_LAG_SECONDS, a new window starts, so that the client is not locked
 * out until the old time comes again. If a policy change makes the window longer, the count stays.
 *
 * This holds for a server that limits alone. When servers share an odds store, they lease their
 * budget from it, and the word counts only the requests admitted without the store: see
 * limits/rate_lease.h.
 */
struct rate_budget {
    _Atomic uint64_t window;
    _Atomic(struct rate_lease *) lease; /* made when first needed; freed with the budget */
    uv_mutex_t lock;                    /* guards the lease, and the window of one that has one */
    struct client_counts counts;        /* the client's connections and waiting polls */
    atomic_uint holders;                /* policies, connections, and calls under way */
    /* Each budget is made when first needed: [0] counts requests of the client's account routes
     * that read, [1] those that change something. */
    _Atomic(struct rate_budget *) account[2];
};

/* Starts with one holder; freed with the last. Any thread. */
struct rate_budget *rate_budget_create(void);
struct rate_budget *rate_budget_hold(struct rate_budget *budget);
void rate_budget_release(struct rate_budget **budget);
/* The client's budget of those routes of its account that change something, or of the others. It
 * lives as long as this one. */
struct rate_budget *rate_budget_of_account(struct rate_budget *budget, bool change);

#define RATE_LIMIT_LAG_SECONDS 2U

/* The word, its halves, and the word after one more request at `now_wall_ms`. Pure. */
uint64_t rate_window_make(uint64_t start, uint64_t requests);
uint64_t rate_window_start(uint64_t window);
uint64_t rate_window_requests(uint64_t window);
uint64_t rate_window_count(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms);
/* Whole seconds from now to the end of the word's window, rounded up, at least 1. Pure. */
uint32_t rate_window_seconds_left(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms);

/* The limit and budget that a request is counted against: copied, because the policy may change
 * while the request waits. */
struct rate_claim {
    struct rate_limit rate;
    struct rate_budget *budget; /* borrowed; held while the request waits */
};

struct rate_verdict {
    bool limited; /* the policy has a limit: send X-RateLimit-* */
    bool allowed;
    bool alone;             /* the budget is shared, but was decided without the store */
    uint32_t limit;         /* requests a window */
    uint32_t remaining;     /* after this one */
    uint32_t reset_seconds; /* whole seconds left in the window, rounded up, at least 1 */
};

/* Counts this request against the budget, even if it is refused. Any thread. A server that limits
 * alone uses this; for shared budgets see limits/rate_lease.h. */
void rate_limit_take(const struct rate_claim *claim, int64_t now_wall_ms,
                     struct rate_verdict *verdict);

/* Makes the verdict of a limited request. Pure. */
struct rate_verdict rate_verdict_of(const struct rate_limit *rate, bool allowed, uint64_t remaining,
                                    uint32_t reset_seconds);
