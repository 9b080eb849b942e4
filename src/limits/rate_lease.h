#pragma once

#include "base/mailbox.h"
#include "limits/rate_limit.h"
#include "stores/odds_lease.h"

/*
 * Rate limits of servers that share an odds store. The store holds the one budget of each window
 * (docs/interface.md, "Limits"), and each server spends leases of it (odds_store_lease). A hundred
 * requests then cost a few calls to the store.
 *
 * Never over the budget:
 * - a lease is spent only until the end of its window. The deadline counts on our monotonic clock
 *   from before the request to the store, with an allowance for clocks that run at different
 *   speeds. So neither this server's wall clock, nor a slow reply, nor a process that was stopped
 *   for a while can carry a lease into the next window. When a new lease of the same window comes,
 *   the unspent units of the old one are added to it; otherwise they are void;
 * - a lease is spent only under the limit and window for which the store confirmed it. After a
 *   change of policy the server asks the store again first. If more was drawn than the new limit
 *   allows, the unspent units are void.
 *
 * Rarely waiting: when half of a lease is spent, the server fetches the next one in the background.
 * A used-up window is remembered until its end without a call. Each budget has at most one call
 * under way, which serves all requests that wait. A request waits only when a window begins, or
 * when leases are spent faster than the store answers.
 *
 * Without the store (a call failed): this server spends the rest of its lease. Then it admits
 * alone: in this window as many requests as the store last had left, and in later windows the whole
 * limit. So n servers admit at most n times the limit in a window. No request waits during an
 * outage; the server retries the store in the background every RATE_LEASE_RETRY_NS. The next call
 * that succeeds reports the requests that were admitted without the store, and the use that the
 * store last reported, in case it has lost that.
 *
 * Threads: any, except for create and destroy.
 */

#define RATE_LEASE_RETRY_NS 200000000U
/* If the store's clock is set, this server notices within this time. */
#define RATE_LEASE_TERM_NS 60000000000U

struct rate_leases;

/* `store` has leases and outlives this; `log` may be NULL. */
struct rate_leases *rate_leases_create(struct odds_store *store, struct log *log);
/* Waits for calls that are under way, at most until the store's deadline, and posts the mails of
 * all pending requests before it returns. No take may follow. The mailboxes of pending requests
 * must still exist. */
void rate_leases_destroy(struct rate_leases **leases);

struct rate_leases_facts {
    atomic_uint_least64_t asked;   /* calls to the store */
    atomic_uint_least64_t failed;  /* calls without an answer or with a malformed one */
    atomic_uint_least64_t granted; /* requests leased */
};
/* For the metrics; all zeros where `leases` is NULL. */
const struct rate_leases_facts *rate_leases_facts(const struct rate_leases *leases);
extern const struct metric rate_leases_metrics[];

/* Makes the lease of the claim's budget if it has none yet; call it before the calls below.
 * `client` is the name of the budget in the store: a customer's id, or an address. */
void rate_lease_prepare(struct rate_leases *leases, const struct rate_claim *claim,
                        const char *client);

/* `deliver` is the caller's, who takes again when the mail comes. */
struct rate_pending {
    struct mail mail; /* first */
    struct mailbox *mailbox;
    STAILQ_ENTRY(rate_pending) link;
};
/*
 * STATUS_OK: decided, and `pending` is not used. STATUS_PENDING: only the store can tell. In that
 * case `pending`, unless it is NULL, waits for a lease: its mail is posted to its mailbox once,
 * within about the store's deadline. `now_ns` is clock_monotonic_ns, read for this call and not
 * when the loop woke up, because the process may have been stopped in between.
 */
MUST_CHECK enum status rate_lease_take(const struct rate_claim *claim, uint64_t now_ns,
                                       struct rate_pending *pending, struct rate_verdict *verdict);

/* Decides at once without the store, as during an outage; for a request that has waited too
 * long. */
void rate_lease_take_alone(const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict);

/* The time until which a lease may be spent that was requested at `asked_ns` and is valid for
 * `left_us` from the store's answer. A clock under adjustment runs up to 0.05 % fast or slow
 * (adjtimex(2)); ours and the store's together 0.1 %. Pure. */
uint64_t rate_lease_deadline(uint64_t asked_ns, uint64_t left_us);
