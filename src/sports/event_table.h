#pragma once

#include <sys/queue.h>

#include "records/event_id.h"
#include "records/sport.h"

/*
 * Nodes by event, with the order of their last use, so that the table's owner can drop the oldest.
 * The number of buckets is fixed: with the 65,536 events that the largest owner keeps, a bucket has
 * eight. The nodes are embedded in the owner's structs and belong to it. Threads: one at a time.
 */
struct event_node {
    LIST_ENTRY(event_node) chain;  /* in the bucket */
    TAILQ_ENTRY(event_node) order; /* by last use */
    uint64_t used_ms;              /* monotonic */
    struct event_id id;
    enum sport sport;
};

struct event_table {
    LIST_HEAD(event_bucket, event_node) * buckets;
    size_t count;
    uint64_t seed;                             /* clients choose ids */
    TAILQ_HEAD(event_order, event_node) order; /* from the oldest to the newest */
};

void event_table_init(struct event_table *table);
void event_table_free(struct event_table *table); /* it is empty */

struct event_node *event_table_oldest(const struct event_table *table); /* NULL: it is empty */

/* NULL: the table does not have it. */
struct event_node *event_table_find(const struct event_table *table, enum sport sport,
                                    const struct event_id *id);

/* Fills the node and adds it as the newest. The table has none of that event yet. */
void event_table_add(struct event_table *table, struct event_node *node, enum sport sport,
                     const struct event_id *id, uint64_t now_ms);
void event_table_remove(struct event_table *table, struct event_node *node);

/* Makes it the newest, at most once a second for one node, so that a busy node costs nothing. */
void event_table_touch(struct event_table *table, struct event_node *node, uint64_t now_ms);
