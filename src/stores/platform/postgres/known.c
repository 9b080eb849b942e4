/*
 * Two of the C library's hash tables, and the items that they lead to. Its hash has no seed, and
 * needs none: croupier and its operators choose the ids that are stored, and clients only those that
 * are looked for.
 */
#include "stores/platform/postgres/known.h"

#include <search.h>

#include "base/memory.h"

struct table {
    struct hsearch_data index; /* by the key of an item, a string with which it begins */
    void *items[KNOWN_MAX];
    size_t count;
};

struct known {
    struct table players, owners;
};

static void table_make(struct table *table)
{
    CHECK(hcreate_r((size_t)2 * KNOWN_MAX, &table->index) != 0);
}

static void table_free(struct table *table)
{
    hdestroy_r(&table->index);
    for (size_t i = 0; i < table->count; i++)
        memory_free(table->items[i]);
    table->index = (struct hsearch_data){0};
    table->count = 0;
}

static void *table_find(struct table *table, const char *key)
{
    const ENTRY wanted = {.key = (char *)(uintptr_t)key};
    ENTRY *found;
    return hsearch_r(wanted, FIND, &found, &table->index) != 0 ? found->data : NULL;
}

static void table_add(struct table *table, const void *item, size_t size)
{
    ENTRY *added;
    if (table_find(table, item) != NULL)
        return;
    CHECK(table->count < KNOWN_MAX);
    void *copy = memory_copy(item, size);
    table->items[table->count++] = copy;
    CHECK(hsearch_r((ENTRY){.key = copy, .data = copy}, ENTER, &added, &table->index) != 0);
}

struct known *known_create(void)
{
    struct known *known = memory_alloc_zeroed(1, sizeof *known);
    table_make(&known->players);
    table_make(&known->owners);
    return known;
}

void known_destroy(struct known **known)
{
    if (*known == NULL)
        return;
    table_free(&(*known)->players);
    table_free(&(*known)->owners);
    memory_free(*known);
    *known = NULL;
}

void known_forget(struct known *known)
{
    table_free(&known->players);
    table_free(&known->owners);
    table_make(&known->players);
    table_make(&known->owners);
}

bool known_has_room(const struct known *known, size_t more)
{
    return known->players.count + more <= KNOWN_MAX && known->owners.count + more <= KNOWN_MAX;
}

struct known_player *known_player(struct known *known, const char *id)
{
    return table_find(&known->players, id);
}

const struct known_owner *known_owner(struct known *known, const char *id)
{
    return table_find(&known->owners, id);
}

void known_add_player(struct known *known, const struct known_player *player)
{
    table_add(&known->players, player, sizeof *player);
}

void known_add_owner(struct known *known, const struct known_owner *owner)
{
    table_add(&known->owners, owner, sizeof *owner);
}
