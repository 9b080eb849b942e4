#ifndef CROUPIER_ADMISSION_RATE_LEASE_H
#define CROUPIER_ADMISSION_RATE_LEASE_H

#include <sys/queue.h>

#include "base/mailbox.h"
#include "limits/rate_limit.h"
#include "metrics/metrics.h"
#include "stores/odds.h"

/*
 * Rate limits of servers that share an odds store: each budget of a window is one, in the store
 * (docs/interface.md, "Limits"). This server spends leases of it (odds_store_lease), so that a
 * request costs one compare-and-swap, as without leases, and the store is called a few times for a
 * hundred requests.
 *
 * Never over the budget:
 *   - a lease is spent only until the end of its window, reckoned on our monotonic clock from
 *     before it was asked for, with an allowance for clocks that run at different speeds. So
 *     neither the wall clock of this server, nor a reply that took long, nor a process that was
 *     stopped for a while, can carry a lease into the next window. What is left of one when another
 *     of the same window comes is added to it; anything else is void;
 *   - it is spent only under the limit and window that it was confirmed under: when the policy has
 *     changed the store is asked again first, and if more was drawn than the new limit allows, what
 *     is left of it is void.
 *
 * Rarely waiting: when half of a lease is spent the next one is fetched in the background. That a
 * window is used up is remembered to its end without a call. One call is under way for a budget at
 * a time, and all who wait for it are served by it. A request waits when a window begins, and when
 * leases are spent faster than the store answers.
 *
 * Without the store (a call failed): what is left of a lease is spent; then this server admits, for
 * itself, what it knew to be left of the window, and in later windows the whole limit. So with n
 * servers at most n times the limit is admitted in a window. No request waits meanwhile; the store
 * is tried again in the background every RATE_LEASE_RETRY_NS. When it answers it learns what was
 * admitted without it, and what was drawn as far as we know, in case it has forgotten.
 *
 * Threads: any, but for create and destroy.
 */

#define RATE_LEASE_RETRY_NS 200000000U
/* A store whose clock is set by hand is noticed after so long at the latest. */
#define RATE_LEASE_TERM_NS 60000000000U

struct rate_leases;

/* `store` has leases and outlives this; `log` may be NULL. */
struct rate_leases *rate_leases_create(struct odds_store *store, struct log *log);
/* Waits for calls that are under way, at most the store's deadline, and has posted all mails of
 * pending requests before it returns. No take may follow; mailboxes of pending requests are
 * still there. */
void rate_leases_destroy(struct rate_leases **leases);

struct rate_leases_facts {
    uint64_t asked;   /* calls to the store */
    uint64_t failed;  /* those that were not answered, or with nonsense */
    uint64_t granted; /* requests leased */
};
void rate_leases_facts(const struct rate_leases *leases, struct rate_leases_facts *facts);
extern const struct metric rate_leases_metrics[];

/* Before a claim is handed to the calls below: makes its budget's lease when it is the first.
 * `client` is the name of the budget in the store: a customer's id, or an address. */
void rate_lease_prepare(struct rate_leases *leases, const struct rate_claim *claim,
                        const char *client);

/* STATUS_OK: decided. STATUS_PENDING: only the store knows. `now_ns` is clock_monotonic_ns, read
 * now: not when the loop woke up, since the process may have been stopped in between. */
MUST_CHECK enum status rate_lease_take(const struct rate_claim *claim, uint64_t now_ns,
                                       struct rate_verdict *verdict);

/* Waits for a lease. STATUS_OK: decided after all, and `pending` is the caller's.
 * STATUS_PENDING: its mail is posted to its mailbox once, within about the store's deadline; then
 * ask again. */
struct rate_pending {
    struct mail mail; /* first; the caller sets `deliver` */
    struct mailbox *mailbox;
    STAILQ_ENTRY(rate_pending) link;
};
MUST_CHECK enum status rate_lease_wait(const struct rate_claim *claim, uint64_t now_ns,
                                       struct rate_pending *pending, struct rate_verdict *verdict);

/* Decides at once without the store, as when it is away: for one who has waited too long. */
void rate_lease_take_alone(const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict);

/* Until when a lease may be spent that was asked for at `asked_ns` and is good for `left_us` since
 * the store answered. Clocks that are being adjusted run up to 0.05 % fast or slow (adjtimex(2));
 * ours and the store's together 0.1 %. Pure. */
uint64_t rate_lease_deadline(uint64_t asked_ns, uint64_t left_us);

#endif
