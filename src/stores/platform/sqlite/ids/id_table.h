#pragma once

#include "stores/platform/sqlite/ids/id_entry.h"

/*
 * The ids of some hundred thousand rows, in memory: entries in the order in which they were added,
 * which is that of their numbers, and chains through those of one bucket, the newest first. So a
 * key with thousands of numbers costs no more to add to than any other.
 *
 * Threads: the owner's lock.
 */

struct id_table {
    size_t count;
    size_t bucket_mask;
    uint64_t seed; /* of the buckets: clients cannot choose keys that share one */
    struct id_entry *entries;
    uint32_t *next;  /* of each entry: one more than the place of the one before it, 0: none */
    uint32_t *heads; /* of each bucket: likewise its newest */
};

#define ID_TABLE_ROOM (ID_INDEX_TABLE_IDS + ID_ADDED_MAX)

struct id_table *id_table_create(void);
void id_table_destroy(struct id_table **table);

/* Numbers never descend. */
void id_table_add(struct id_table *table, const struct id_entry *entry);

/* The numbers above `after` of a key, ascending, each once: how many of them, at most `room`. */
size_t id_table_find(const struct id_table *table, uint64_t key, int64_t after, int64_t *numbers,
                     size_t room);

/* Brings the key's bucket nearer. */
void id_table_prefetch(const struct id_table *table, uint64_t key);

/* A copy of entries in order of key, then number; for memory_free. */
struct id_entry *id_entries_sorted(const struct id_entry *entries, size_t count);

size_t id_table_memory(void); /* bytes of one */
