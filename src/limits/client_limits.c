/*
 * Counts by address; see client_limits.h. A connection takes the lock twice for a short time, when
 * it opens and when it closes. An address without connections takes no memory.
 */
#include "limits/client_limits.h"

#include <sys/queue.h>

#include <uv.h>

#include "base/hash.h"
#include "base/memory.h"

#define BUCKETS 16384U

struct address_count {
    LIST_ENTRY(address_count) link;
    struct address address;
    uint32_t connections;
};

struct client_limits {
    atomic_uint most[CLIENT_LIMITS];
    uint64_t seed;
    uv_mutex_t lock; /* guards the buckets */
    LIST_HEAD(, address_count) buckets[BUCKETS];
};

struct client_limits *client_limits_create(void)
{
    struct client_limits *limits = memory_alloc_zeroed(1, sizeof *limits);
    CHECK(uv_mutex_init(&limits->lock) == 0);
    limits->seed = hash_random_seed();
    return limits;
}

void client_limits_destroy(struct client_limits **at)
{
    struct client_limits *limits = memory_take(at);
    if (limits == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        CHECK(LIST_EMPTY(&limits->buckets[i]));
    uv_mutex_destroy(&limits->lock);
    memory_free(limits);
}

void client_limits_set(struct client_limits *limits, enum client_limit which, uint32_t most)
{
    relaxed_store(&limits->most[which], most);
}

/* Call with the lock held. Sets `bucket` to the address's bucket. NULL: the address has no
 * connection. */
static struct address_count *find(struct client_limits *limits, const struct address *address,
                                  size_t *bucket)
{
    struct address_count *at;
    *bucket = hash_bytes(limits->seed, address->bytes, sizeof address->bytes) % BUCKETS;
    LIST_FOREACH (at, &limits->buckets[*bucket], link)
        if (address_equals(&at->address, address))
            return at;
    return NULL;
}

uint32_t client_limits_get(const struct client_limits *limits, enum client_limit which)
{
    return relaxed_load(&limits->most[which]);
}

uint32_t client_limits_add(struct client_limits *limits, const struct address *address)
{
    struct address key = address_client(address);
    uint32_t most = client_limits_get(limits, CONNECTIONS_PER_ADDRESS);
    size_t bucket;
    uv_mutex_lock(&limits->lock);
    struct address_count *found = find(limits, &key, &bucket);
    if (found == NULL) {
        found = memory_alloc_zeroed(1, sizeof *found);
        found->address = key;
        LIST_INSERT_HEAD(&limits->buckets[bucket], found, link);
    }
    uint32_t count = ++found->connections;
    uv_mutex_unlock(&limits->lock);
    return most > 0 && count > most ? count - most : 0;
}

void client_limits_remove(struct client_limits *limits, const struct address *address)
{
    struct address key = address_client(address);
    size_t bucket;
    uv_mutex_lock(&limits->lock);
    struct address_count *found = find(limits, &key, &bucket);
    CHECK(found != NULL);
    if (--found->connections == 0) {
        LIST_REMOVE(found, link);
        memory_free(found);
    }
    uv_mutex_unlock(&limits->lock);
}

bool client_limits_take(const struct client_limits *limits, enum client_limit which,
                        atomic_uint *count)
{
    uint32_t most = client_limits_get(limits, which);
    if (relaxed_add(count, 1) < most || most == 0)
        return true;
    relaxed_subtract(count, 1);
    return false;
}
