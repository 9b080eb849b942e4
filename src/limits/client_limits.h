#ifndef CROUPIER_LIMITS_CLIENT_LIMITS_H
#define CROUPIER_LIMITS_CLIENT_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

/*
 * How many connections and waiting polls one client may have, so that none takes all of
 * `[server] max_connections` or `waiting_max` (docs/configuration.md, "One client").
 *
 * Connections are counted for their address before anything is read from them, and for the customer
 * whose key their last admitted request had. The counts of an address are here. Those of a customer
 * are in its budget (limits/rate_limit.h), which is at hand where a request is admitted.
 *
 * One object for all serving threads; any thread calls.
 */
enum client_limit {
    CONNECTIONS_PER_ADDRESS,
    CONNECTIONS_PER_CUSTOMER,
    WAITING_PER_CUSTOMER,
    CLIENT_LIMITS,
};

struct client_counts {
    atomic_uint connections;
    atomic_uint waiting;
};

struct client_limits;

struct client_limits *client_limits_create(void);
/* No connection is counted any more. */
void client_limits_destroy(struct client_limits **limits);

/* 0: no limit. A lower one refuses new connections and closes none. */
void client_limits_set(struct client_limits *limits, enum client_limit which, uint32_t most);

/* Counts one connection more. Returns by how many the address has more than it may now. Of IPv6 a
 * network of 64 bits counts as one address: a client has one at least. */
uint32_t client_limits_add(struct client_limits *limits, const struct address *address);
void client_limits_remove(struct client_limits *limits, const struct address *address);

/* Adds one to a customer's count, unless that would be more than the limit. */
bool client_limits_take(const struct client_limits *limits, enum client_limit which,
                        atomic_uint *count);

#endif
