#ifndef CROUPIER_STORES_ODDS_REDIS_LEASE_H
#define CROUPIER_STORES_ODDS_REDIS_LEASE_H

#include "stores/odds/redis/redis.h"

/*
 * Leases of shared rate budgets (odds_store_lease) for the Redis/Valkey engine: one key a client,
 * `rate:CLIENT` behind the configured prefix, and one script that does all of it. The commands that
 * a user of the server needs for it: EVALSHA, EVAL, TIME, GET, SET.
 */
struct redis_leases;

/* All borrowed. */
struct redis_leases_options {
    const char *prefix; /* may be NULL */
    uint32_t timeout_ms;
    struct log *log; /* may be NULL */
};
struct redis_leases *redis_leases_create(const struct redis_leases_options *options);
/* The link is gone, and with it all calls. */
void redis_leases_destroy(struct redis_leases **leases);

/* What odds_store_lease says. */
MUST_CHECK enum status redis_leases_ask(struct redis_leases *leases, struct redis_link *link,
                                        struct odds_lease *lease);

#endif
