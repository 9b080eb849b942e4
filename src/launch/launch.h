#pragma once

#include "games/games.h"
#include "launch/provider_calls.h"

/*
 * POST /api/v1/casino/games/{gameId}/launch.
 *
 * A launch for money needs its player, who is found or made in the platform store, on a thread of
 * the launcher's own with a bounded queue: a full queue is 503 at once, and so is a launch whose
 * turn comes only after two seconds. The store is not asked for a client that has gone away. Then
 * the URL is made here, from memory; or the provider's launch endpoint is asked for it
 * (launch/provider_calls.h), and whatever goes wrong with that is 503 provider_unavailable.
 */
struct launcher;

/* The launcher's thread opens `store`, whose `create` is false, and logs where it does.
 * `call_ca_file` "": the system's certificates. */
struct launcher *launcher_create(const struct platform_store_options *store,
                                 uint32_t call_timeout_ms, const char *call_ca_file);
/* Answers what is queued, by mail, so before the mailboxes go. No request may follow. */
void launcher_destroy(struct launcher **launcher);

/* For the metrics. Any thread. */
struct launcher_facts {
    uint64_t queue_depth; /* launches that wait for their player */
    struct provider_calls_facts calls;
};
void launcher_facts(struct launcher *launcher, struct launcher_facts *facts);
extern const struct metric launcher_metrics[];

/* Replies at once, or defers the request and replies through `mailbox`, which must be this
 * thread's (as `pages` is). */
void launch_route(struct launcher *launcher, struct games_pages *pages, struct mailbox *mailbox,
                  struct http_request *request, const char *customer_id, bool sandbox,
                  struct text game_id);
