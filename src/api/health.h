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
 * A request makes a separate thread probe both stores. Requests that come during a probe share its
 * result. If the probe takes longer than the slower store's timeout plus a quarter of a second, the
 * answer is "degraded"; so a probe that hangs delays no answer further.
 *
 * 200 {"status":"ok","cache":"ok"} or 503 {"status":"degraded","cache":"unreachable"}.
 */

struct health;

struct health_options {
    struct odds_store *odds; /* borrowed */
    uint32_t odds_timeout_ms;
    struct platform_store_options platform; /* opened and used by the probe's thread; `uri` is
                                               borrowed, `create` must be false */
    struct log *log;                        /* borrowed; may be NULL */
};

struct health *health_create(const struct health_options *options);

/*
 * Defers the request and replies on this thread, through `mailbox`, which must be this thread's.
 * Uses request->abandoned and request->deferral. Never blocks. `mailbox` may be destroyed once
 * every request passed here was answered or abandoned.
 */
void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request);

/* No request may come any more. Answers waiting requests "degraded" and waits for a probe that is
 * under way, which the stores' timeouts bound. */
void health_destroy(struct health **health);

#endif
