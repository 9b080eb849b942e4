/*
 * A ring of blocks. The reading thread fills one and hands it over when it is full, so that the
 * lock is taken once for some hundred transactions. The lock guards the counts; a block belongs to
 * the reader until it is counted as filled, then to the consumer until it is counted as emptied.
 */
#include "operator/audit_relay.h"

#include "base/memory.h"
#include "base/threads.h"

#define BLOCKS 8
#define BLOCK_SIZE 128

struct block {
    struct ledger_transaction transactions[BLOCK_SIZE];
    size_t count;
};

struct relay {
    relay_consumer *consume;
    void *context;
    struct block *blocks;
    uv_thread_t thread;
    uv_mutex_t lock; /* guards everything below */
    uv_cond_t changed;
    uint64_t filled, emptied; /* blocks, since the beginning */
    bool ended;               /* no block will be filled any more */
    bool stopped;             /* nothing more is wanted */
};

static struct block *block_at(struct relay *relay, uint64_t number)
{
    return &relay->blocks[number % BLOCKS];
}

/* Waits for a block to consume; NULL: the end. */
static struct block *next_filled(struct relay *relay)
{
    uv_mutex_lock(&relay->lock);
    while (relay->filled == relay->emptied && !relay->ended)
        uv_cond_wait(&relay->changed, &relay->lock);
    struct block *block = relay->filled == relay->emptied ? NULL : block_at(relay, relay->emptied);
    uv_mutex_unlock(&relay->lock);
    return block;
}

static bool consume_block(struct relay *relay, const struct block *block)
{
    for (size_t i = 0; i < block->count; i++)
        if (!relay->consume(relay->context, &block->transactions[i]))
            return false;
    return true;
}

/* Goes on taking blocks when nothing is wanted, so that the reader never waits for nothing. */
static void run_consumer(void *argument)
{
    struct relay *relay = argument;
    bool wanted = true;
    for (struct block *block = next_filled(relay); block != NULL; block = next_filled(relay)) {
        wanted = wanted && consume_block(relay, block);
        uv_mutex_lock(&relay->lock);
        relay->emptied++;
        relay->stopped = !wanted;
        uv_cond_broadcast(&relay->changed);
        uv_mutex_unlock(&relay->lock);
    }
}

struct relay *relay_create(relay_consumer *consume, void *context)
{
    struct relay *relay = memory_alloc_zeroed(1, sizeof *relay);
    relay->consume = consume;
    relay->context = context;
    relay->blocks = memory_alloc_zeroed(BLOCKS, sizeof *relay->blocks);
    CHECK(uv_mutex_init(&relay->lock) == 0);
    CHECK(uv_cond_init(&relay->changed) == 0);
    thread_start(&relay->thread, "relay", run_consumer, relay);
    return relay;
}

/* The reader's block is handed over, and the next one is its own when it is empty. */
static bool hand_over(struct relay *relay)
{
    uv_mutex_lock(&relay->lock);
    relay->filled++;
    uv_cond_broadcast(&relay->changed);
    while (relay->filled - relay->emptied == BLOCKS)
        uv_cond_wait(&relay->changed, &relay->lock);
    block_at(relay, relay->filled)->count = 0;
    bool wanted = !relay->stopped;
    uv_mutex_unlock(&relay->lock);
    return wanted;
}

bool relay_put(struct relay *relay, const struct ledger_transaction *transaction)
{
    struct block *block = block_at(relay, relay->filled); /* only this thread changes `filled` */
    block->transactions[block->count++] = *transaction;
    return block->count < BLOCK_SIZE || hand_over(relay);
}

void relay_destroy(struct relay **at)
{
    struct relay *relay = *at;
    *at = NULL;
    if (relay == NULL)
        return;
    uv_mutex_lock(&relay->lock);
    relay->filled++; /* also what is not full */
    relay->ended = true;
    uv_cond_broadcast(&relay->changed);
    uv_mutex_unlock(&relay->lock);
    CHECK(uv_thread_join(&relay->thread) == 0);
    uv_cond_destroy(&relay->changed);
    uv_mutex_destroy(&relay->lock);
    memory_free(relay->blocks);
    memory_free(relay);
}
