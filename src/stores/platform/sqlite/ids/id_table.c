/* See id_table.h. */
#include "stores/platform/sqlite/ids/id_table.h"

#include "base/hash.h"
#include "base/memory.h"

/* A power of two, at least twice the entries. */
static size_t bucket_count(void)
{
    size_t buckets = 16;
    while (buckets < 2 * (size_t)ID_INDEX_TABLE_IDS)
        buckets *= 2;
    return buckets;
}

size_t id_table_memory(void)
{
    return sizeof(struct id_table) + ID_TABLE_ROOM * (sizeof(struct id_entry) + sizeof(uint32_t)) +
           bucket_count() * sizeof(uint32_t);
}

struct id_table *id_table_create(void)
{
    struct id_table *table = memory_alloc_zeroed(1, sizeof *table);
    size_t buckets = bucket_count();
    table->bucket_mask = buckets - 1;
    table->seed = hash_random_seed() | 1;
    table->entries = memory_alloc(ID_TABLE_ROOM * sizeof *table->entries);
    table->next = memory_alloc(ID_TABLE_ROOM * sizeof *table->next);
    table->heads = memory_alloc_zeroed(buckets, sizeof *table->heads);
    return table;
}

void id_table_destroy(struct id_table **table)
{
    if (*table == NULL)
        return;
    memory_free((*table)->entries);
    memory_free((*table)->next);
    memory_free((*table)->heads);
    memory_free(*table);
    *table = NULL;
}

static size_t bucket_of(const struct id_table *table, uint64_t key)
{
    uint64_t mixed = (key ^ table->seed) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 32) * table->seed;
    return (mixed >> 32) & table->bucket_mask;
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

/* ---- sorting --------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    const struct id_entry *a = one;
    const struct id_entry *b = other;
    return id_entry_is_before(a, b) ? -1 : id_entry_is_before(b, a);
}

struct id_entry *id_entries_sorted(const struct id_entry *entries, size_t count)
{
    struct id_entry *sorted = memory_alloc((count + 1) * sizeof *sorted);
    if (count > 0)
        memcpy(sorted, entries, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted;
}
