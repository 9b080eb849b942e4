#pragma once

#include "base/mailbox.h"
#include "http/deferral.h"
#include "stores/odds.h"
#include "stores/platform.h"

/*
 * GET /api/v1/health (docs/interface.md, "Health").
 *
 * A request makes a separate thread probe both stores. Requests that come during a probe share its
 * result. A request waits for the slower store's timeout plus a quarter of a second at most. Then
 * its answer is "degraded", and so is every other until the probe ends, at once.
 *
 * 200 {"status":"ok","cache":"ok"} or 503 {"status":"degraded","cache":"unreachable"}.
 */

struct health;

/* The probe's thread opens `platform`, whose `create` is false, and logs where it does. `odds` and
 * what `platform` points to are borrowed. */
struct health *health_create(struct odds_store *odds, uint32_t odds_timeout_ms,
                             const struct platform_store_options *platform);

/* Initialises the queue of a serving thread's requests; its owner closes it. */
void health_waits_init(struct health *health, struct http_deferral_queue *waits, uv_loop_t *loop);

/*
 * Defers the request and replies on this thread, through `mailbox`, which must be this thread's, as
 * `waits` is. Uses request->abandoned and request->deferral. Never blocks. `mailbox` outlives the
 * health: a request whose client has closed comes back too.
 */
void health_ask(struct health *health, struct http_deferral_queue *waits, struct mailbox *mailbox,
                struct http_request *request);

/* No request may come any more. Waits for a probe that is under way, which the stores' timeouts
 * bound, and answers "degraded" what came after it. */
void health_destroy(struct health **health);
