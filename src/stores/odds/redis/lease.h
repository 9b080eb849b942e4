#pragma once

#include <stdatomic.h>

#include "stores/odds/redis/link.h"
#include "stores/odds_lease.h"

/*
 * Leases of shared rate budgets: one key a client, `rate:CLIENT`, and one script that does all of
 * it. The commands that a user of the server needs for it: EVAL, TIME, GET, SET.
 */
struct redis_leases {
    const char *prefix;
    struct log *log;
    atomic_bool complained;
};

/* What odds_store_lease says. */
MUST_CHECK enum status redis_lease_ask(struct redis_leases *leases, struct redis_link *link,
                                       struct odds_lease *lease);
