#ifndef CROUPIER_API_HEALTH_H
#define CROUPIER_API_HEALTH_H

#include "base/log.h"
#include "base/mailbox.h"
#include "http/http.h"
#include "stores/odds.h"
#include "stores/refresher.h"

/*
 * GET /api/v1/health (docs/interface.md, "Health").
 *
 * The odds store is asked by a thread of its own, which its timeout bounds. The platform store
 * answers as long as the policies are confirmed (stores/refresher.h). Requests that come during a
 * probe share the next one.
 *
 * 200 {"status":"ok","cache":"ok"} or 503 {"status":"degraded","cache":"unreachable"}.
 */

struct health;

struct health_options {
    struct odds_store *odds;    /* borrowed, as is the rest */
    struct refresher *policies; /* of the platform store */
    struct log *log;            /* may be NULL */
};

struct health *health_create(const struct health_options *options);

/*
 * Defers the request and replies on this thread, through `mailbox`, which must be this thread's.
 * Uses request->abandoned and request->deferral. Never blocks. `mailbox` outlives the
 * health: a request whose client has closed comes back too.
 */
void health_ask(struct health *health, struct mailbox *mailbox, struct http_request *request);

/* No request may come any more. Answers waiting requests "degraded" and waits for a probe that is
 * under way, which the odds store's timeout bounds. */
void health_destroy(struct health **health);

#endif
