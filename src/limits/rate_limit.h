#ifndef CROUPIER_ADMISSION_RATE_LIMIT_H
#define CROUPIER_ADMISSION_RATE_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "limits/client_limits.h"
#include "records/policy.h"

/*
 * The count of one client's current window (docs/interface.md, "Limits"). Windows are fixed and
 * aligned to the epoch: a window of 60 seconds begins with the minute, on every machine.
 *
 * There is one budget a customer or legacy address, and every snapshot of its policy points at the
 * same one, so that a refresh of the policies never gives a client its requests back.
 *
 * One 64-bit word holds the start of the window, in seconds since the epoch (high half), and the
 * requests seen in it (low half), so that one compare-and-swap both starts a window and counts. The
 * count stops at its maximum; requests that are refused count too.
 *
 * Clocks: threads read the time a little before they count, so one may arrive with the end of the
 * old window when another has started the next; it is counted in the next. A clock that is set back
 * by more than RATE_LIMIT_LAG_SECONDS starts a window afresh, rather than locking the client out
 * until the old time has come again. A window that a policy change made longer keeps its count.
 *
 * All this is for a server that limits alone. With an odds store that several servers share, what
 * may be admitted is leased from there, and the word counts only what was admitted without the
 * store: see limits/rate_lease.h.
 */
struct rate_budget {
    _Atomic uint64_t window;
    _Atomic(struct rate_lease *) lease; /* made when it is first needed; goes with the budget */
    struct client_counts counts;        /* what the client holds now */
    atomic_uint holders;                /* policies, connections, and calls under way */
};

/* Starts with one holder. Any thread; freed with the last. */
struct rate_budget *rate_budget_create(void);
struct rate_budget *rate_budget_hold(struct rate_budget *budget);
void rate_budget_release(struct rate_budget **budget);

#define RATE_LIMIT_LAG_SECONDS 2U

/* The word, its halves, and the word after one more request at `now_wall_ms`. Pure. */
uint64_t rate_window_make(uint64_t start, uint64_t requests);
uint64_t rate_window_start(uint64_t window);
uint64_t rate_window_requests(uint64_t window);
uint64_t rate_window_count(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms);
/* Whole seconds from now to the end of the word's window, rounded up, at least 1. Pure. */
uint32_t rate_window_seconds_left(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms);

/* What a request asks for a unit of. The policy may change while it waits. */
struct rate_claim {
    struct rate_limit rate;
    struct rate_budget *budget; /* borrowed; where the request waits, it is held */
};

struct rate_verdict {
    bool limited; /* the policy has a limit: send X-RateLimit-* */
    bool allowed;
    bool alone;             /* the budget is shared, but the store could not be asked */
    uint32_t limit;         /* requests a window */
    uint32_t remaining;     /* after this one */
    uint32_t reset_seconds; /* whole seconds left in the window, rounded up, at least 1 */
};

/* Counts this request against the budget, also when it is refused. Any thread. This is for a server
 * that limits alone; for budgets that several share see limits/rate_lease.h. */
void rate_limit_take(const struct rate_claim *claim, int64_t now_wall_ms,
                     struct rate_verdict *verdict);

/* What a client is answered under a limit. Pure. */
struct rate_verdict rate_verdict_of(const struct rate_limit *rate, bool allowed, uint64_t remaining,
                                    uint32_t reset_seconds);

#endif
