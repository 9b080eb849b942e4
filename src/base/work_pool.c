/* A bounded queue, a mutex, a condition variable, a few threads; see work_pool.h. */
#include "base/work_pool.h"
#include "base/threads.h"

#include "base/memory.h"

struct work_pool {
    uv_mutex_t lock; /* guards everything below */
    uv_cond_t more;
    STAILQ_HEAD(, work) queue;
    size_t depth;
    size_t limit;
    bool ending;
    size_t thread_count;
    size_t running; /* threads that have begun */
    uv_thread_t threads[];
};

static struct work *take(struct work_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    while (STAILQ_EMPTY(&pool->queue) && !pool->ending)
        uv_cond_wait(&pool->more, &pool->lock);
    struct work *work = STAILQ_FIRST(&pool->queue);
    if (work != NULL) {
        STAILQ_REMOVE_HEAD(&pool->queue, link);
        pool->depth--;
    }
    uv_mutex_unlock(&pool->lock);
    return work;
}

static void run(void *argument)
{
    struct work_pool *pool = argument;
    uv_mutex_lock(&pool->lock);
    const size_t thread = pool->running++;
    uv_mutex_unlock(&pool->lock);
    for (struct work *work = take(pool); work != NULL; work = take(pool)) {
        work->thread = thread;
        work->run(work);
    }
}

struct work_pool *work_pool_create(const char *name, size_t threads, size_t queue_limit)
{
    struct work_pool *pool =
        memory_alloc_zeroed(1, sizeof *pool + threads * sizeof pool->threads[0]);
    CHECK(threads > 0 && queue_limit > 0);
    CHECK(uv_mutex_init(&pool->lock) == 0);
    CHECK(uv_cond_init(&pool->more) == 0);
    STAILQ_INIT(&pool->queue);
    pool->limit = queue_limit;
    for (; pool->thread_count < threads; pool->thread_count++)
        thread_start(&pool->threads[pool->thread_count], name, run, pool);
    return pool;
}

enum status work_pool_submit(struct work_pool *pool, struct work *work)
{
    enum status status = STATUS_FULL;
    uv_mutex_lock(&pool->lock);
    CHECK(!pool->ending);
    if (pool->depth < pool->limit) {
        STAILQ_INSERT_TAIL(&pool->queue, work, link);
        pool->depth++;
        uv_cond_signal(&pool->more);
        status = STATUS_OK;
    }
    uv_mutex_unlock(&pool->lock);
    return status;
}

size_t work_pool_depth(struct work_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    size_t depth = pool->depth;
    uv_mutex_unlock(&pool->lock);
    return depth;
}

void work_pool_destroy(struct work_pool **pool)
{
    if (*pool == NULL)
        return;
    uv_mutex_lock(&(*pool)->lock);
    (*pool)->ending = true;
    uv_cond_broadcast(&(*pool)->more);
    uv_mutex_unlock(&(*pool)->lock);
    for (size_t i = 0; i < (*pool)->thread_count; i++)
        CHECK(uv_thread_join(&(*pool)->threads[i]) == 0);
    uv_cond_destroy(&(*pool)->more);
    uv_mutex_destroy(&(*pool)->lock);
    memory_free(*pool);
    *pool = NULL;
}
