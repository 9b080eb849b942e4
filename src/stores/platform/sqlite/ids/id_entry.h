#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All parts of the index of ids share these: an entry of it, and its bounds. id_index.h says what
 * they are for. */

/* A test makes these small, to see ids go through all merges. */
#ifndef ID_INDEX_TABLE_IDS
#define ID_INDEX_TABLE_IDS 131072 /* a table is full with so many */
#define ID_INDEX_FANOUT 4         /* runs that are merged into one */
#define ID_INDEX_LEVELS 5         /* of runs; those of the last are not merged */
#endif
#ifndef ID_INDEX_TABLES_MAX /* while runs cannot be written: 4 million ids, 118 MB of memory */
#define ID_INDEX_TABLES_MAX 32
#endif

#define ID_IDENTITY_SIZE 16
#define ID_ROW_HASH_SIZE 32
#define ID_ADDED_MAX 1024 /* entries in one call */

struct id_entry {
    uint64_t key;
    int64_t number; /* of the row, at least 1 */
};

/* Compares by key, then by number. */
static inline bool id_entry_is_before(const struct id_entry *one, const struct id_entry *other)
{
    return one->key < other->key || (one->key == other->key && one->number < other->number);
}
