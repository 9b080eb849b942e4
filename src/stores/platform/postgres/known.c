/*
 * Two of the C library's search trees. They need no hash and no seed: croupier and its operators
 * choose the ids that are stored, and clients only those that are looked for.
 */
#include "stores/platform/postgres/known.h"

#include <search.h>
#include <string.h>

#include "base/memory.h"

struct known {
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
    CHECK((*count)++ < KNOWN_MAX);
    CHECK(tsearch(memory_copy(item, size), tree, compare) != NULL);
}

struct known *known_create(void)
{
    return memory_alloc_zeroed(1, sizeof(struct known));
}

void known_destroy(struct known **known)
{
    if (*known != NULL)
        known_forget(*known);
    memory_free(*known);
    *known = NULL;
}

void known_forget(struct known *known)
{
    tdestroy(known->players, memory_free);
    tdestroy(known->owners, memory_free);
    *known = (struct known){0};
}

bool known_has_room(const struct known *known, size_t more)
{
    return known->player_count + more <= KNOWN_MAX && known->owner_count + more <= KNOWN_MAX;
}

struct known_player *known_player(struct known *known, const char *id)
{
    return find(&known->players, id);
}

const struct known_owner *known_owner(struct known *known, const char *id)
{
    return find(&known->owners, id);
}

void known_add_player(struct known *known, const struct known_player *player)
{
    add(&known->players, &known->player_count, player, sizeof *player);
}

void known_add_owner(struct known *known, const struct known_owner *owner)
{
    add(&known->owners, &known->owner_count, owner, sizeof *owner);
}
