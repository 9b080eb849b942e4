#pragma once

#include "stores/odds/lmdb/records.h"

/*
 * The index knows, in the memory of this process, which transaction wrote each value.
 *
 * LMDB's tree proves neither that a record is the newest nor that there is none. The index does: it
 * is built by a walk of all records, which must add up to the root's count and digest, and then
 * follows each commit by the list of changes that the commit wrote. So a value is what the index
 * says or it is damaged, and a value that the index does not list is not stored.
 *
 * One thread at a time. Functions with a view run inside odds_guard_run. A fault leaves the index
 * as it was at the end of a commit, or empty.
 */

struct lmdb_entry {
    struct event_id event; /* of a catalog: zero */
    uint8_t kind;
    uint8_t sport;
    uint64_t transaction; /* 0: withdrawn. Stored with LMDB_UNTIL: its expiry was written too */
};
#define LMDB_UNTIL ((uint64_t)1 << 63)
_Static_assert(sizeof(struct lmdb_entry) == sizeof(struct event_id) + 2 + sizeof(uint64_t),
               "no holes, as it is stored");

/* The entries that a buffer holds, and how many they are. */
static inline struct lmdb_entry *lmdb_entries(const struct buffer *buffer, size_t *count)
{
    *count = buffer->size / sizeof(struct lmdb_entry);
    return (struct lmdb_entry *)(void *)buffer->data;
}

/* Zeroed: empty. */
struct lmdb_index {
    uint64_t transaction;     /* the index is as of this one; 0: it is to be built */
    struct buffer entries;    /* of struct lmdb_entry */
    struct buffer deadlines;  /* int64_t, of each entry: clock_boot_ms() when it expires; 0: never;
                                 LMDB_EXPIRED: it has */
    size_t expired;           /* entries with LMDB_EXPIRED */
    int64_t next_deadline_ms; /* no value expires before; 0: none does */
    uint64_t boot;            /* clock_boot_id(); 0: not asked for yet */
    size_t live;              /* entries that are not withdrawn */
    uint32_t *slots;          /* a hash table: 1 + the entry's place; 0: free */
    size_t slot_count;        /* a power of two, or 0 */
    struct buffer changes;    /* of one commit, as they are read */
    struct buffer untils;     /* int64_t: their deadlines */
};

struct lmdb_entry lmdb_entry_of(enum odds_kind kind, enum sport sport, const struct event_id *event,
                                uint64_t transaction);
/* NULL: it is not listed. Valid until the index changes. */
const struct lmdb_entry *lmdb_index_find(const struct lmdb_index *index,
                                         const struct lmdb_entry *wanted);
/* `deadline_ms`: as in `deadlines`. */
void lmdb_index_set(struct lmdb_index *index, const struct lmdb_entry *entry, int64_t deadline_ms);
int64_t lmdb_index_deadline(const struct lmdb_index *index, const struct lmdb_entry *listed);
/* Notes each value whose time is over. Appends those that have expired since the last call. */
void lmdb_index_expire(struct lmdb_index *index, int64_t now_ms, struct buffer *expired);
size_t lmdb_index_count(const struct lmdb_index *index);
/* Valid as what lmdb_index_find returns. */
const struct lmdb_entry *lmdb_index_at(const struct lmdb_index *index, size_t place);
void lmdb_index_free(struct lmdb_index *index);

/* Builds the index from nothing. `thoroughly`: each value's bytes are checked too, and that LMDB
 * finds it by its key. MDB_CORRUPTED: the records are not those that were published. */
int lmdb_index_build(struct lmdb_index *index, struct lmdb_view *view, bool thoroughly);
/* Brings it to the view's transaction, which is not an older one. */
int lmdb_index_follow(struct lmdb_index *index, struct lmdb_view *view);

/* Appends what one transaction changed; anything but 0: the store does not say. */
int lmdb_changes_read(const struct lmdb_view *view, uint64_t transaction, struct buffer *entries);
