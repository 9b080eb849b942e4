/*
 * Two of the C library's search trees. They need no hash and no seed: croupier and its operators
 * choose the ids that are stored, and clients only those that are looked for.
 */
#include "stores/platform/postgres/fact_cache.h"

#include <search.h>
#include <string.h>

#include "base/memory.h"

struct fact_cache {
    void *players, *owners; /* trees */
    size_t player_count, owner_count;
};

/* An item begins with its key, a string. */
static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void *find(void *const *tree, const char *key)
{
    void **found = tfind(key, tree, compare);
    return found != NULL ? *found : NULL;
}

static void add(void **tree, size_t *count, const void *item, size_t size)
{
    if (find(tree, item) != NULL)
        return;
    CHECK((*count)++ < FACT_CACHE_MAX);
    CHECK(tsearch(memory_copy(item, size), tree, compare) != NULL);
}

struct fact_cache *fact_cache_create(void)
{
    return memory_alloc_zeroed(1, sizeof(struct fact_cache));
}

void fact_cache_destroy(struct fact_cache **cache)
{
    if (*cache != NULL)
        fact_cache_empty(*cache);
    memory_free(*cache);
    *cache = NULL;
}

void fact_cache_empty(struct fact_cache *cache)
{
    tdestroy(cache->players, memory_free);
    tdestroy(cache->owners, memory_free);
    *cache = (struct fact_cache){0};
}

bool fact_cache_has_room(const struct fact_cache *cache, size_t more)
{
    return cache->player_count + more <= FACT_CACHE_MAX &&
           cache->owner_count + more <= FACT_CACHE_MAX;
}

struct cached_player *fact_cache_player(struct fact_cache *cache, const char *id)
{
    return find(&cache->players, id);
}

const struct cached_owner *fact_cache_owner(struct fact_cache *cache, const char *id)
{
    return find(&cache->owners, id);
}

void fact_cache_add_player(struct fact_cache *cache, const struct cached_player *player)
{
    add(&cache->players, &cache->player_count, player, sizeof *player);
}

void fact_cache_add_owner(struct fact_cache *cache, const struct cached_owner *owner)
{
    add(&cache->owners, &cache->owner_count, owner, sizeof *owner);
}
