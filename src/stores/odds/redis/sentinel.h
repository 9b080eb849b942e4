#pragma once

#include "base/mailbox.h"
#include "stores/odds/redis/options.h"

/*
 * Asks the sentinels, or the nodes of a cluster, which server is the master. On the I/O thread. The
 * callbacks may ask again.
 */
struct redis_sentinel;

struct redis_sentinel_options {
    const struct redis_link_options *link; /* borrowed, as are the next two */
    uv_loop_t *loop;
    struct mailbox *mailbox;
    bool cluster;  /* the location's hosts are nodes of a cluster */
    uint32_t slot; /* of the cluster: its master is wanted */
    void *owner;
    /* `epoch`: of a cluster's master (cluster.h). */
    void (*found)(void *owner, const struct redis_host *master, uint64_t epoch);
    void (*failed)(void *owner, enum status status, const char *why); /* none names a master */
};

struct redis_sentinel *redis_sentinel_create(const struct redis_sentinel_options *options);
void redis_sentinel_destroy(struct redis_sentinel **sentinel); /* while the loop runs */

/* `found` or `failed` will be called, perhaps from inside of this. */
void redis_sentinel_ask(struct redis_sentinel *sentinel);
/* Is the address of a sentinel still being looked up? */
bool redis_sentinel_looks_up(const struct redis_sentinel *sentinel);
