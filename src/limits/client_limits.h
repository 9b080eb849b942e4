#pragma once

#include "base/address.h"
#include "base/relaxed.h"

/*
 * Limits the connections and waiting polls of one client, so that no client takes all of `[server]
 * max_connections` or `waiting_max` (docs/configuration.md, "One client").
 *
 * A connection counts for its address before anything is read from it, and later for the customer
 * whose key its last admitted request had. This module keeps the counts of addresses. The counts of
 * a customer are in its budget (limits/rate_limit.h), which admission provides.
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
/* Call it when no connection is counted any more. */
void client_limits_destroy(struct client_limits **limits);

/* 0: no limit. A lowered limit refuses new connections and closes none. */
void client_limits_set(struct client_limits *limits, enum client_limit which, uint32_t most);

uint32_t client_limits_get(const struct client_limits *limits, enum client_limit which);

/* Counts one more connection. Returns by how many the address is now over its limit. An IPv6 /64
 * network counts as one address, because a client has at least that. */
uint32_t client_limits_add(struct client_limits *limits, const struct address *address);
void client_limits_remove(struct client_limits *limits, const struct address *address);

/* Adds one to a customer's count, unless that would exceed the limit. */
bool client_limits_take(const struct client_limits *limits, enum client_limit which,
                        atomic_uint *count);
