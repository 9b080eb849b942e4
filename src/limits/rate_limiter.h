#ifndef CROUPIER_API_RATE_LIMITER_H
#define CROUPIER_API_RATE_LIMITER_H

#include "http/http.h"
#include "limits/rate_lease.h"
#include "metrics/metrics.h"

/*
 * One serving thread's rate limits: nearly always decided on the spot; rarely, a request is
 * deferred until a lease of a shared budget comes (limits/rate_lease.h), at most `timeout_ms`.
 * Then it is decided without the store. All on the limiter's thread.
 */
struct rate_limiter;

struct rate_limiter_options {
    struct rate_leases *leases; /* borrowed; NULL: this server limits alone */
    struct mailbox *mailbox;
    metrics_cell *counters; /* of rate_limiter_metrics */
    uint32_t timeout_ms;
    /* For a request that was deferred: it has been decided. */
    void (*decided)(void *context, struct http_request *request,
                    const struct rate_verdict *verdict);
    void *context;
};
struct rate_limiter *rate_limiter_create(const struct rate_limiter_options *options);
/* All requests are gone, and the leases too. Goes itself when the last mail has come. */
void rate_limiter_destroy(struct rate_limiter **limiter);

/*
 * True: decided. False: it waits, and `decided` will be called, unless the client goes away before;
 * or too many wait, and the request was answered with 503. `client` names
 * the budget where servers share it. Claim and client are not needed afterwards.
 */
bool rate_limiter_take(struct rate_limiter *limiter, struct http_request *request,
                       const struct rate_claim *claim, const char *client, int64_t now_wall_ms,
                       struct rate_verdict *verdict);

extern const struct metric rate_limiter_metrics[];

#endif
