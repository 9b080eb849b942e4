#pragma once

#include "api/routes.h"

/*
 * X-Croupier-Fault (docs/sandbox.md): a sandbox caller asks for a fault in place of its answer. On
 * the wallets and on launches: delay=MS, close-before, close-after, 503, 500;applied=yes or
 * 500;applied=no; on sports routes 429. On other routes it is ignored.
 */

/* Of an admitted sandbox caller's request to `route` that has the field. True: go on, and what the
 * handler replies is spoilt as asked. False: replied, or put aside; then `go_on` is called later,
 * once, unless the client closes first. */
MUST_CHECK bool fault_pass(struct http_request *request, const struct route *route, uv_loop_t *loop,
                           void (*go_on)(void *context, struct http_request *request),
                           void *context);
