/* Chained hashing and a list in order of use; see event_table.h. */
#include "sports/event_table.h"

#include "base/hash.h"
#include "base/memory.h"

#define BUCKETS 8192
#define TOUCH_MS 1000

void event_table_init(struct event_table *table)
{
    *table = (struct event_table){
        .buckets = memory_alloc_zeroed(BUCKETS, sizeof *table->buckets),
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

static struct event_bucket *bucket_of(const struct event_table *table, enum sport sport,
                                      const struct event_id *id)
{
    return &table->buckets[hash_text(table->seed + sport, event_id_text(id)) % BUCKETS];
}

struct event_node *event_table_find(const struct event_table *table, enum sport sport,
                                    const struct event_id *id)
{
    struct event_node *node;
    LIST_FOREACH (node, bucket_of(table, sport, id), chain)
        if (node->sport == sport && event_id_equals(&node->id, id))
            return node;
    return NULL;
}

struct event_node *event_table_oldest(const struct event_table *table)
{
    return TAILQ_FIRST(&table->order);
}

void event_table_add(struct event_table *table, struct event_node *node, enum sport sport,
                     const struct event_id *id, uint64_t now_ms)
{
    node->sport = sport;
    node->id = *id;
    node->used_ms = now_ms;
    LIST_INSERT_HEAD(bucket_of(table, sport, id), node, chain);
    TAILQ_INSERT_TAIL(&table->order, node, order);
    table->count++;
}

void event_table_remove(struct event_table *table, struct event_node *node)
{
    LIST_REMOVE(node, chain);
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
