#ifndef CROUPIER_API_HEALTH_H
#define CROUPIER_API_HEALTH_H

#include <stdint.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "http/http.h"
#include "stores/odds.h"
#include "stores/platform.h"

/*
 * GET /api/v1/health (docs/interface.md, "Health").
 *
 * Really asks both stores, on a thread of its own, when a client asks. Askers that come
 * while a probe is under way share its result. When the probe takes longer than the slower store's
 * timeout and a quarter of a second, the answer is "degraded" without it; a probe that hangs holds
 * up no answer.
 *
 * 200 {"status":"ok","cache":"ok"} or 503 {"status":"degraded","cache":"unreachable"}.
 */

struct health;

struct health_options {
    struct odds_store *odds; /* borrowed */
    uint32_t odds_timeout_ms;
    struct platform_store_options platform; /* opened by the probe's thread, for itself; `uri` is
                                               borrowed, `create` must be false */
    struct log *log;                        /* borrowed; may be NULL */
};

struct health *health_create(const struct health_options *options);

/*
 * Defers the request and replies on this thread, through `mailbox`, which must be this thread's.
 * Uses request->abandoned and request->deferral. Never blocks. Once every request that was asked
 * about was answered or abandoned, `mailbox` may be destroyed.
 */
void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request);

/* No request may come any more; those that wait are answered "degraded". Waits for a probe that is
 * under way, as long as the stores' timeouts let it. */
void health_destroy(struct health **health);

#endif
