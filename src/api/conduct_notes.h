#pragma once

#include "api/routes.h"
#include "usage/usage.h"

/*
 * Notes what a sandbox caller does. A connection has the fact of its current request, from when the
 * request is admitted (or a provider's is refused) until its answer is out or the connection has
 * closed. All other connections have NULL.
 */

/* `route` NULL: there is none, or the caller is not admitted. `first`: it is the first request of
 * its connection that is noted. */
struct conduct_fact *conduct_note(const struct http_request *request, const struct caller *caller,
                                  const struct route *route, const struct address *client,
                                  bool first);

/* Completes the fact, frees it and hands it over. `outcome` NULL: there was no answer. */
void conduct_note_end(struct usage *usage, struct conduct_fact **fact,
                      const struct http_outcome *outcome);
