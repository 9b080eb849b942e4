/*
 * Two hash tables with open addressing, each beside an array of its items in the order in which
 * they came. The slots hold places in the array, so that growing moves no slot's item by itself.
 */
#include "stores/platform/postgres/known.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define SLOTS_FIRST 1024 /* a power of two */

struct table {
    size_t item_size;     /* of which each begins with its key, a string */
    unsigned char *items; /* room for half as many as there are slots */
    uint32_t *slots;      /* 0: empty; else a place in `items`, from 1 */
    size_t count, slot_count;
};

struct known {
    uint64_t seed; /* clients choose the ids that are looked for */
    struct table players, owners;
};

static void table_make(struct table *table, size_t item_size, size_t slot_count)
{
    *table = (struct table){.item_size = item_size, .slot_count = slot_count};
    table->items = memory_alloc_zeroed(slot_count / 2, item_size);
    table->slots = memory_alloc_zeroed(slot_count, sizeof table->slots[0]);
}

static void table_free(struct table *table)
{
    memory_free(table->items);
    memory_free(table->slots);
}

static void *item_at(const struct table *table, uint32_t slot)
{
    return table->items + (size_t)(slot - 1) * table->item_size;
}

/* The slot that has the key, or the empty one where it belongs. */
static uint32_t *slot_of(const struct table *table, uint64_t seed, const char *key)
{
    for (size_t at = hash_string(seed, key);; at++) {
        uint32_t *slot = &table->slots[at & (table->slot_count - 1)];
        if (*slot == 0 || strcmp(item_at(table, *slot), key) == 0)
            return slot;
    }
}

static void *table_find(const struct table *table, uint64_t seed, const char *key)
{
    uint32_t slot = *slot_of(table, seed, key);
    return slot == 0 ? NULL : item_at(table, slot);
}

static void table_grow(struct table *table, uint64_t seed)
{
    memory_free(table->slots);
    table->slot_count *= 2;
    table->slots = memory_alloc_zeroed(table->slot_count, sizeof table->slots[0]);
    table->items = memory_resize(table->items, table->slot_count / 2 * table->item_size);
    for (uint32_t slot = 1; slot <= table->count; slot++)
        *slot_of(table, seed, item_at(table, slot)) = slot;
}

static void table_add(struct table *table, uint64_t seed, const void *item)
{
    CHECK(table->count < KNOWN_MAX);
    if (table_find(table, seed, item) != NULL)
        return;
    if (table->count == table->slot_count / 2)
        table_grow(table, seed);
    uint32_t slot = (uint32_t)++table->count;
    *slot_of(table, seed, item) = slot;
    memcpy(item_at(table, slot), item, table->item_size);
}

struct known *known_create(void)
{
    struct known *known = memory_alloc_zeroed(1, sizeof *known);
    known->seed = hash_random_seed();
    table_make(&known->players, sizeof(struct known_player), SLOTS_FIRST);
    table_make(&known->owners, sizeof(struct known_owner), SLOTS_FIRST);
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

static void table_forget(struct table *table)
{
    memset(table->slots, 0, table->slot_count * sizeof table->slots[0]);
    table->count = 0;
}

void known_forget(struct known *known)
{
    table_forget(&known->players);
    table_forget(&known->owners);
}

bool known_has_room(const struct known *known, size_t more)
{
    return known->players.count + more <= KNOWN_MAX && known->owners.count + more <= KNOWN_MAX;
}

struct known_player *known_player(const struct known *known, const char *id)
{
    return table_find(&known->players, known->seed, id);
}

const struct known_owner *known_owner(const struct known *known, const char *id)
{
    return table_find(&known->owners, known->seed, id);
}

void known_add_player(struct known *known, const struct known_player *player)
{
    table_add(&known->players, known->seed, player);
}

void known_add_owner(struct known *known, const struct known_owner *owner)
{
    table_add(&known->owners, known->seed, owner);
}
