#ifndef CROUPIER_APP_WORKER_H
#define CROUPIER_APP_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "admission/admission.h"
#include "admission/rate_lease.h"
#include "api/health.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "config/config.h"
#include "games/games.h"
#include "http/http.h"
#include "http/tls.h"
#include "launch/launch.h"
#include "metrics/metrics.h"
#include "sports/sports.h"
#include "wallet/ledger.h"

/*
 * One serving thread: a libuv loop with a listening socket of its own, and one thread's side of
 * admission, sports and metrics.
 *
 * Made, directed and destroyed by the main thread, which posts mail to it. Its life:
 *
 *   worker_start → serving → worker_drain → drained (a mail to `boss`) → worker_stop → joined
 *
 * Between drained and stop the loop still runs, so that late mails (answers made ready for clients
 * that went away) find it.
 */

struct worker;

/* What all serving threads use. */
struct worker_shared {
    struct policies *policies;
    struct rate_leases *leases; /* NULL: rate limits are this server's alone */
    struct sports *sports;
    struct games *games;
    struct launcher *launcher;
    struct ledger *ledger;
    struct health *health;
};

struct worker_options {
    size_t index;
    int listener; /* descriptor, taken over */
    const struct config *config;
    struct http_tls *tls;               /* held; NULL: plain */
    const struct worker_shared *shared; /* borrowed, all of it */
    struct metrics_shard *metrics;
    struct log *log;
    struct mailbox *boss;           /* of the main thread */
    void (*drained)(void *context); /* runs on the main thread, once */
    void *context;
};

struct worker *worker_start(const struct worker_options *options);

/* New settings (held); `tls` may be NULL. `done` runs on the main thread when they are in force;
 * also while the boss's mailbox is destroyed. */
void worker_reload(struct worker *worker, const struct config *config, struct http_tls *tls,
                   void (*done)(void *context), void *context);
void worker_drain(struct worker *worker);
/* The drain took too long; harmless when it is over. */
void worker_abort(struct worker *worker);
/* Ends the thread and frees the worker; only when it has drained and no thread posts to it any
 * more. */
void worker_stop(struct worker **worker);

#endif
