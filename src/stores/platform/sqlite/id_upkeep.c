/* Upkeep of the index of ids, and the thread that does it: id_merge.c writes tables and merges
 * runs. */
#include "base/clock.h"
#include "stores/platform/sqlite/id_parts.h"

#define RETRY_NS ((uint64_t)5 * 1000000000)

bool id_index_wants_upkeep(struct id_index *index)
{
    if (atomic_load_explicit(&index->outdated, memory_order_relaxed))
        return false;
    uv_mutex_lock(&index->lock);
    bool wanted = id_merge_is_wanted(index);
    uv_mutex_unlock(&index->lock);
    return wanted;
}

void id_index_upkeep(struct id_index *index)
{
    enum status status = STATUS_OK;
    struct error error = {0};
    uv_mutex_lock(&index->upkeep);
    while (status == STATUS_OK && !atomic_load_explicit(&index->hurry, memory_order_relaxed) &&
           !atomic_load_explicit(&index->outdated, memory_order_relaxed))
        status = id_merge_step(index, true, NULL, &error);
    uv_mutex_unlock(&index->upkeep);
}

static void run(void *argument)
{
    struct id_index *index = argument;
    struct background *thread = &index->thread;
    uv_mutex_lock(&thread->lock);
    while (!thread->stopping) {
        uint64_t retry_ns = clock_monotonic_ns() + RETRY_NS;
        while (!index->woken && !thread->stopping &&
               condition_wait_until(&thread->wake, &thread->lock, retry_ns)) {
        }
        bool ends = thread->stopping;
        index->woken = false;
        uv_mutex_unlock(&thread->lock);
        if (!ends && id_index_wants_upkeep(index))
            id_index_upkeep(index);
        uv_mutex_lock(&thread->lock);
    }
    uv_mutex_unlock(&thread->lock);
}

void id_index_start(struct id_index *index)
{
    CHECK(!index->has_thread);
    index->has_thread = true;
    background_start(&index->thread, "ledger-ids", run, index);
    id_parts_wake(index);
}
