/* Serving threads append to the waiting facts. Only the writer takes them away, so it reads those
 * that it has counted without the lock. */
#include "conduct/conduct.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/platform_conduct.h"

struct conduct {
    struct platform_store_options store;
    struct background writer; /* its lock guards: */
    size_t count;
    uint64_t dropped, told; /* told: as many as facts that were kept since have in `lost` */
    struct conduct_fact waiting[CONDUCT_WAITING_MAX];
};

void conduct_add(struct conduct *conduct, struct conduct_fact *fact)
{
    uv_mutex_lock(&conduct->writer.lock);
    if (conduct->count == CONDUCT_WAITING_MAX) {
        conduct->dropped++;
    } else {
        fact->lost = (int64_t)(conduct->dropped - conduct->told);
        conduct->told = conduct->dropped;
        conduct->waiting[conduct->count++] = *fact;
    }
    uv_mutex_unlock(&conduct->writer.lock);
}

struct conduct_counts conduct_count(struct conduct *conduct)
{
    uv_mutex_lock(&conduct->writer.lock);
    struct conduct_counts counts = {conduct->count, conduct->dropped};
    uv_mutex_unlock(&conduct->writer.lock);
    return counts;
}

static void write_waiting(struct conduct *conduct)
{
    struct platform_store *store = NULL;
    struct error error = {.text = ""};
    uv_mutex_lock(&conduct->writer.lock);
    size_t count = conduct->count;
    uv_mutex_unlock(&conduct->writer.lock);
    if (count == 0)
        return;
    enum status status = platform_store_open(&store, &conduct->store, &error);
    if (status == STATUS_OK)
        status = platform_conduct_add(store, conduct->waiting, count, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return; /* they wait; the writer of usage logs why */
    uv_mutex_lock(&conduct->writer.lock);
    conduct->count -= count;
    memmove(conduct->waiting, conduct->waiting + count,
            conduct->count * sizeof conduct->waiting[0]);
    uv_mutex_unlock(&conduct->writer.lock);
}

static void run_writer(void *argument)
{
    struct conduct *conduct = argument;
    while (!background_sleep(&conduct->writer, clock_monotonic_ns() + UINT64_C(1000000000)))
        write_waiting(conduct);
    write_waiting(conduct);
}

struct conduct *conduct_create(const struct platform_store_options *store)
{
    struct conduct *conduct = memory_alloc_zeroed(1, sizeof *conduct);
    conduct->store = *store;
    background_start(&conduct->writer, "conduct", run_writer, conduct);
    return conduct;
}

void conduct_destroy(struct conduct **at)
{
    struct conduct *conduct = memory_take(at);
    if (conduct == NULL)
        return;
    background_stop(&conduct->writer);
    memory_free(conduct);
}
