/* Chained hashing and a list in order of use; see event_table.h. */
#include "sports/event_table.h"

#include "base/hash.h"
#include "base/memory.h"

#define FIRST_BUCKETS 64
#define TOUCH_MS 1000

void event_table_init(struct event_table *table)
{
    *table = (struct event_table){
        .buckets = memory_alloc_zeroed(FIRST_BUCKETS, sizeof(struct event_node *)),
        .bucket_mask = FIRST_BUCKETS - 1,
        .seed = hash_random_seed(),
    };
    TAILQ_INIT(&table->order);
}

void event_table_free(struct event_table *table)
{
    CHECK(table->count == 0);
    memory_free(table->buckets);
    *table = (struct event_table){0};
}

static uint64_t hash_of(const struct event_table *table, enum sport sport,
                        const struct event_id *id)
{
    return hash_text(table->seed + sport, event_id_text(id));
}

struct event_node *event_table_find(const struct event_table *table, enum sport sport,
                                    const struct event_id *id)
{
    uint64_t hash = hash_of(table, sport, id);
    struct event_node *node = table->buckets[hash & table->bucket_mask];
    while (node != NULL &&
           (node->hash != hash || node->sport != sport || !event_id_equals(&node->id, id)))
        node = node->chain;
    return node;
}

struct event_node *event_table_oldest(const struct event_table *table)
{
    return TAILQ_FIRST(&table->order);
}

static void grow(struct event_table *table)
{
    size_t mask = 2 * table->bucket_mask + 1;
    struct event_node **buckets = memory_alloc_zeroed(mask + 1, sizeof(struct event_node *));
    struct event_node *node;
    TAILQ_FOREACH (node, &table->order, order) {
        node->chain = buckets[node->hash & mask];
        buckets[node->hash & mask] = node;
    }
    memory_free(table->buckets);
    table->buckets = buckets;
    table->bucket_mask = mask;
}

void event_table_add(struct event_table *table, struct event_node *node, enum sport sport,
                     const struct event_id *id, uint64_t now_ms)
{
    if (table->count > table->bucket_mask)
        grow(table);
    node->hash = hash_of(table, sport, id);
    node->sport = sport;
    node->id = *id;
    node->used_ms = now_ms;
    struct event_node **bucket = &table->buckets[node->hash & table->bucket_mask];
    node->chain = *bucket;
    *bucket = node;
    TAILQ_INSERT_TAIL(&table->order, node, order);
    table->count++;
}

void event_table_remove(struct event_table *table, struct event_node *node)
{
    struct event_node **link = &table->buckets[node->hash & table->bucket_mask];
    while (*link != node)
        link = &(*link)->chain;
    *link = node->chain;
    TAILQ_REMOVE(&table->order, node, order);
    table->count--;
}

void event_table_touch(struct event_table *table, struct event_node *node, uint64_t now_ms)
{
    if (now_ms < node->used_ms + TOUCH_MS)
        return;
    node->used_ms = now_ms;
    TAILQ_REMOVE(&table->order, node, order);
    TAILQ_INSERT_TAIL(&table->order, node, order);
}
