#pragma once

#include "stores/platform/sqlite/ids/id_entry.h"

/*
 * The ids of some hundred thousand rows, in memory: entries in the order in which they were added,
 * which is that of their numbers, and chains through those of one bucket, the newest first. So a
 * key with thousands of numbers costs no more to add to than any other.
 *
 * Threads: the owner's lock.
 */

#define ID_TABLE_ROOM (ID_INDEX_TABLE_IDS + ID_ADDED_MAX)
#define ID_TABLE_BUCKETS (2 * ID_INDEX_TABLE_IDS)

struct id_table {
    size_t count;
    uint64_t seed; /* of the buckets: clients cannot choose keys that share one */
    struct id_entry entries[ID_TABLE_ROOM];
    uint32_t next[ID_TABLE_ROOM];     /* one more than the place of the entry before it, 0: none */
    uint32_t heads[ID_TABLE_BUCKETS]; /* of each bucket: likewise its newest */
};

struct id_table *id_table_create(void); /* for memory_free */

/* Numbers never descend. */
void id_table_add(struct id_table *table, const struct id_entry *entry);

/* The numbers above `after` of a key, ascending, each once: how many of them, at most `room`. */
size_t id_table_find(const struct id_table *table, uint64_t key, int64_t after, int64_t *numbers,
                     size_t room);

/* Brings the key's bucket nearer. */
void id_table_prefetch(const struct id_table *table, uint64_t key);
