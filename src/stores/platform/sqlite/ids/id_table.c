/* See id_table.h. */
#include "stores/platform/sqlite/ids/id_table.h"

#include "base/hash.h"
#include "base/memory.h"

struct id_table *id_table_create(void)
{
    struct id_table *table = memory_alloc_zeroed(1, sizeof *table);
    table->seed = hash_random_seed() | 1;
    return table;
}

static size_t bucket_of(const struct id_table *table, uint64_t key)
{
    uint64_t mixed = (key ^ table->seed) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 32) * table->seed;
    return (mixed >> 32) % ID_TABLE_BUCKETS;
}

void id_table_prefetch(const struct id_table *table, uint64_t key)
{
    __builtin_prefetch(&table->heads[bucket_of(table, key)]);
}

void id_table_add(struct id_table *table, const struct id_entry *entry)
{
    size_t at = table->count++;
    uint32_t *head = &table->heads[bucket_of(table, entry->key)];
    CHECK(at < ID_TABLE_ROOM && (at == 0 || table->entries[at - 1].number <= entry->number));
    table->entries[at] = *entry;
    table->next[at] = *head;
    *head = (uint32_t)at + 1;
}

/* Walks the chain, from the newest back to `after`: how many numbers the key has. The numbers that
 * come after `skip` others are written at `numbers`, from the last place to the first. */
static size_t walk_chain(const struct id_table *table, uint64_t key, int64_t after, size_t skip,
                         int64_t *numbers, size_t room)
{
    size_t found = 0;
    int64_t last = 0;
    for (uint32_t at = table->heads[bucket_of(table, key)]; at != 0; at = table->next[at - 1]) {
        const struct id_entry *entry = &table->entries[at - 1];
        if (entry->number <= after)
            break;
        if (entry->key != key || entry->number == last)
            continue;
        last = entry->number;
        if (found >= skip && found - skip < room)
            numbers[room - 1 - (found - skip)] = entry->number;
        found++;
    }
    return found;
}

size_t id_table_find(const struct id_table *table, uint64_t key, int64_t after, int64_t *numbers,
                     size_t room)
{
    size_t found = walk_chain(table, key, after, SIZE_MAX, NULL, 0);
    size_t some = found < room ? found : room;
    if (some > 0)
        (void)walk_chain(table, key, after, found - some, numbers, some);
    return some;
}
