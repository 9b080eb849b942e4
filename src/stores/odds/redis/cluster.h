#pragma once

#include "stores/odds/redis/location.h"
#include "stores/odds/redis/reply.h"

/*
 * A cluster of Redis or Valkey servers, of which croupier uses one slot: a hash tag in the prefix
 * leads all keys to it. This reads what nodes say about that slot
 * (docs/decisions/redis-cluster.md).
 */

/* The slot of all keys with this prefix. False: the prefix has no hash tag, as in "{croupier}:". */
bool redis_cluster_slot(const char *prefix, uint32_t *slot);

struct redis_cluster_view {
    struct redis_host nodes[REDIS_HOSTS_MAX]; /* replicas too; further ones are left out */
    size_t node_count;
    struct redis_host master; /* of the slot; no port: the slot has none */
    uint64_t epoch;           /* of that master. A later master of the slot has a higher one. */
};

/* Reads the reply to CLUSTER NODES. `asked`: its name is that of a node without an address.
 * `names`: a node's host name counts before its address, as TLS wants. */
void redis_cluster_read(struct text nodes, uint32_t slot, const struct redis_host *asked,
                        bool names, struct redis_cluster_view *view);

/* The command was not carried out, because the node does not hold its keys. */
enum redis_redirect {
    REDIS_NOT_REDIRECTED,
    REDIS_MOVED, /* another node has the slot */
    REDIS_ASK,   /* the slot is being moved: the command may be sent to `host`, after ASKING */
    REDIS_LATER, /* some of the command's keys have moved already, and others have not */
};
/* `host` is set for REDIS_ASK. An address without a name gets that of `asked`. */
enum redis_redirect redis_redirect_read(const struct redis_reply *reply, const char *asked,
                                        struct redis_host *host);
