#pragma once

#include "account/account.h"
#include "api/health.h"
#include "api/reasons.h"
#include "api/refusals.h"
#include "launch/launch.h"
#include "limits/rate_limiter.h"
#include "usage/usage.h"
#include "wallet/handler.h"

/*
 * Serves requests; the order of checks is decided here (docs/interface.md):
 *
 *   health answers first → admission → the customer's connections → rate limit on sports routes
 *   → route and method → casino access → coding of a body → path parameters
 *   → sport permission → store.
 *
 * The routes of /api/v1/account have a rate limit of their own, and are not there for a key without
 * an area for them.
 *
 * A caller without a key has no identity in the casino: it gets 403 ip_not_allowed for every path
 * under /api/v1/casino/, even one that does not exist.
 *
 * Each serving thread has one `struct service`; everything in it is borrowed.
 */
struct service_shared { /* by all serving threads */
    struct policies *policies;
    struct client_limits *limits;
    struct refusals *refusals;
    struct rate_leases *leases; /* NULL: rate limits are this server's alone */
    struct sports *sports;
    struct games *games;
    struct launcher *launcher;
    struct ledger *ledger;
    struct account *account;
    struct health *health;
    struct usage *usage;
};

struct service {
    const struct service_shared *shared;
    struct admission *admission;
    struct rate_limiter *rates;
    struct rate_limit account_rate; /* of /api/v1/account, of each customer */
    const struct sports_waits *waits;
    struct sports_cache *sports;
    struct games_pages *games;
    struct wallet_handler *wallet;
    struct http_deferral_queue health_waits;
    struct mailbox *mailbox;
    struct metrics_shard *metrics;
    metrics_cell *counters; /* of service_metrics, in that shard */
    struct usage_thread *usage;
    struct log_batch *access_log;
    struct log *log;
};

/* Options of a server whose requests the service answers; the caller sets the rest. The second is
 * for the providers' listener, which has a signature in place of a key (api/provider_admission.h)
 * and its own paths; otherwise it works as above. */
struct http_server_options service_server_options(struct service *service);
struct http_server_options service_provider_server_options(struct service *service);
/* For rate_limiter_options: continues a request that waited for its rate limit. */
void service_rate_decided(void *context, struct http_request *request,
                          const struct rate_verdict *rate);
/* For the cache of sports and its waiting polls. */
struct sports_waits service_waits(struct service *service);

extern const struct metric service_metrics[];

/* Some of those metrics, for readers inside the process; any thread. */
struct service_totals {
    uint64_t connections; /* open now */
    uint64_t closed;      /* connections, since the start */
    uint64_t denials;     /* all; without DENIAL_UNAVAILABLE, a store's error */
    uint64_t reasons[REASONS_MAX];
};
void service_totals(const struct metrics *metrics, struct service_totals *totals);
