#pragma once

#include "api/routes.h"
#include "usage/usage.h"

/*
 * What sandbox callers have beside others (docs/sandbox.md): faults that they ask for, and notes of
 * what they do.
 *
 * X-Croupier-Fault asks for a fault in place of an answer. On the wallets and on launches:
 * delay=MS, close-before, close-after, 503, 500;applied=yes or 500;applied=no; on sports routes
 * 429. On other routes it is ignored.
 *
 * A connection has the fact of its current request, from when the request is admitted (or a
 * provider's is refused) until its answer is out or the connection has closed. All other
 * connections have NULL.
 */

/* Of an admitted sandbox caller's request to `route` that has the field. True: go on, and what the
 * handler replies is spoilt as asked. False: replied, or put aside; then `go_on` is called later,
 * once, unless the client closes first. */
MUST_CHECK bool fault_pass(struct http_request *request, const struct route *route, uv_loop_t *loop,
                           void (*go_on)(void *context, struct http_request *request),
                           void *context);

/* `route` NULL: there is none, or the caller is not admitted. `first`: it is the first request of
 * its connection that is noted. */
struct conduct_fact *conduct_note(const struct http_request *request, const struct caller *caller,
                                  const struct route *route, const struct address *client,
                                  bool first);

/* Completes the fact, frees it and hands it over. `outcome` NULL: there was no answer. */
void conduct_note_end(struct usage *usage, struct conduct_fact **fact,
                      const struct http_outcome *outcome);
