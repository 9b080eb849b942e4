/*
 * The C library's search trees. They need no hash and no seed: croupier and its operators
 * choose the ids that are stored, and clients only those that are looked for.
 */
#include "stores/platform/postgres/fact_cache.h"

#include <search.h>

#include "base/memory.h"

/* An item begins with its key, a string. */
static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

bool fact_cache_has_room(const struct fact_cache *cache, size_t more)
{
    return cache->count + more <= FACT_CACHE_MAX;
}

void fact_cache_empty(struct fact_cache *cache)
{
    tdestroy(cache->tree, memory_free);
    *cache = (struct fact_cache){0};
}

void *fact_cache_find(const struct fact_cache *cache, const char *id)
{
    void **found = tfind(id, &cache->tree, compare);
    return found != NULL ? *found : NULL;
}

void fact_cache_add(struct fact_cache *cache, const void *item, size_t size)
{
    if (fact_cache_find(cache, item) != NULL)
        return;
    CHECK(cache->count++ < FACT_CACHE_MAX);
    CHECK(tsearch(memory_copy(item, size), &cache->tree, compare) != NULL);
}
