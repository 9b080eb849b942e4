#ifndef CROUPIER_STORES_PLATFORM_SQLITE_IDS_H
#define CROUPIER_STORES_PLATFORM_SQLITE_IDS_H

#include "stores/platform/sqlite/sqlite.h"

/*
 * The index of transaction ids: in levels, and in blocks that prove what they hold (ids.c). Inside
 * platform/sqlite; who keeps transactions uses the functions here, and who audits them the blocks.
 */

/* A test makes these small, to see ids move through all levels. */
#ifndef IDS_FIRST_LEVEL
#define IDS_FIRST_LEVEL 4096
#define IDS_GROWTH 16
#define IDS_BLOCK_MAX 96 /* ids; one with more is split */
#endif
#ifndef IDS_KEY_MASK /* and keys short, to see ids that have the same */
#define IDS_KEY_MASK INT64_MAX
#endif
#define IDS_LEVELS 5
#define IDS_BLOCK_ROOM 512                   /* what one may hold that cannot be split */
#define IDS_ADDED_MAX (2 * LEDGER_BATCH_MAX) /* at once: transactions, and what they roll back */
#define IDS_FOUND_MAX 16                     /* of one key */

struct sqlite_id {
    int64_t key; /* at least 0 */
    int64_t number;
};

/* As stored: the place names the row, the rest is its bytes, in the machine's order. */
struct sqlite_id_block {
    int64_t place, until; /* it holds all ids of its level from here until before there */
    size_t count;
    struct sqlite_id ids[IDS_BLOCK_ROOM]; /* sorted */
};

/* Keys have 63 bits. A place is the level, then the first 60 of the key. */
static inline int64_t sqlite_id_place(int level, int64_t key)
{
    return (int64_t)level << 60 | key >> 3;
}

/* Where the number of a customer's transaction is found under its id, which may have others'. */
int64_t sqlite_id_key(int64_t customer_number, struct text id);

/* False: these are not the bytes that were written there. */
MUST_CHECK bool sqlite_id_block_read(int64_t place, const void *bytes, size_t size,
                                     struct sqlite_id_block *block);

/* For qsort: by key, then by number. */
int sqlite_id_compare(const void *one, const void *other);

/* The numbers that a key leads to. STATUS_MALFORMED when that cannot be proved. */
MUST_CHECK enum status sqlite_ids_find(struct sqlite_store *store, int64_t key,
                                       int64_t numbers[IDS_FOUND_MAX], size_t *count,
                                       struct error *error);

/* In a batch: adds ids, in whatever order, which it sorts; and has others move on where a level has
 * too many. `last_number` is of the newest transaction. */
MUST_CHECK enum status sqlite_ids_add(struct sqlite_store *store, struct sqlite_id *ids,
                                      size_t count, int64_t last_number, struct error *error);

/* Of the newest transaction when ids were added last. */
MUST_CHECK enum status sqlite_ids_last_number(struct sqlite_store *store, int64_t *number,
                                              struct error *error);

/* ids_audit.c: whether the ids are those of the transactions, each once. STATUS_MALFORMED: `error`
 * names the first break. */
MUST_CHECK enum status sqlite_ids_audit(struct sqlite_store *store, struct error *error);

/* The functions that migrations and audits call in SQL. */
void sqlite_ids_register(struct sqlite_store *store);

#endif
