#ifndef CROUPIER_API_SERVICE_H
#define CROUPIER_API_SERVICE_H

#include <stddef.h>

#include "admission/admission.h"
#include "api/health.h"
#include "api/rate_limiter.h"
#include "api/wallet_routes.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "games/games.h"
#include "http/http.h"
#include "launch/launch.h"
#include "metrics/metrics.h"
#include "sports/sports.h"

/*
 * The order of judgement, in one place (docs/interface.md):
 *
 *   health answers first → admission → rate limit on sports routes → route and method
 *   → casino access → coding of a body → path parameters → sport permission → store.
 *
 * A caller without a key has no identity in the casino: every path under /api/v1/casino/, also one
 * that does not exist, is 403 ip_not_allowed for it.
 *
 * One `struct service` a serving thread; everything in it is borrowed.
 */
struct service {
    struct admission *admission;
    struct rate_limiter *rates;
    struct sports_cache *sports;
    struct games_pages *games;
    struct launcher *launcher;
    struct wallet_handler *wallet;
    struct health *health;
    struct mailbox *mailbox;
    struct metrics_shard *metrics;
    metrics_cell *counters; /* of service_metrics, in that shard */
    struct log_batch *access_log;
    struct log *log;
};

/* Of a server whose requests the service answers; the rest is the caller's. */
struct http_server_options service_server_options(struct service *service);
/* For rate_limiter_options: goes on with a request that waited for its rate limit. */
void service_rate_decided(void *context, struct http_request *request,
                          const struct rate_verdict *rate);
/* For the cache of sports: what its waiting polls need. */
struct sports_waits service_waits(struct service *service);

extern const struct metric service_metrics[];

#endif
