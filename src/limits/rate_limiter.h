#pragma once

#include "http/http.h"
#include "limits/rate_lease.h"
#include "metrics/metrics.h"

/*
 * The rate limits of one serving thread. Nearly every request is decided at once. Rarely, a request
 * is deferred until a lease of a shared budget comes (limits/rate_lease.h); after `timeout_ms` it
 * is decided without the store. Everything runs on the limiter's thread.
 */
struct rate_limiter;

struct rate_limiter_options {
    struct rate_leases *leases; /* borrowed; NULL: this server limits alone */
    struct mailbox *mailbox;
    metrics_cell *counters; /* of rate_limiter_metrics */
    uint32_t timeout_ms;
    /* Called when a deferred request is decided. */
    void (*decided)(void *context, struct http_request *request,
                    const struct rate_verdict *verdict);
    void *context;
};
struct rate_limiter *rate_limiter_create(const struct rate_limiter_options *options);
/* Call it when no request is left and the leases are destroyed. The limiter frees itself after its
 * last mail. */
void rate_limiter_destroy(struct rate_limiter **limiter);

/*
 * True: decided. False: the request waits, and `decided` is called unless the client closes first;
 * or too many requests wait, and this one was answered with 503. `client` names the budget in a
 * shared store. Claim and client are not needed after the call.
 */
bool rate_limiter_take(struct rate_limiter *limiter, struct http_request *request,
                       const struct rate_claim *claim, const char *client, int64_t now_wall_ms,
                       struct rate_verdict *verdict);

extern const struct metric rate_limiter_metrics[];
