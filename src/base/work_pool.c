/* A bounded queue, a mutex, a condition variable, a few threads; see work_pool.h. */
#include "base/work_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/memory.h"

struct work_pool {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t more;
    struct work *first;
    struct work *last;
    size_t depth;
    size_t limit;
    bool ending;
    char name[16];
    size_t thread_count;
    pthread_t threads[];
};

static struct work *take(struct work_pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->lock) == 0);
    while (pool->first == NULL && !pool->ending)
        CHECK(pthread_cond_wait(&pool->more, &pool->lock) == 0);
    struct work *work = pool->first;
    if (work != NULL) {
        pool->first = work->next;
        if (pool->first == NULL)
            pool->last = NULL;
        pool->depth--;
    }
    CHECK(pthread_mutex_unlock(&pool->lock) == 0);
    return work;
}

static void *run(void *argument)
{
    struct work_pool *pool = argument;
    (void)pthread_setname_np(pthread_self(), pool->name);
    for (struct work *work = take(pool); work != NULL; work = take(pool))
        work->run(work);
    return NULL;
}

struct work_pool *work_pool_create(const char *name, size_t threads, size_t queue_limit)
{
    struct work_pool *pool =
        memory_alloc_zeroed(1, sizeof *pool + threads * sizeof pool->threads[0]);
    CHECK(threads > 0 && queue_limit > 0);
    CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    CHECK(pthread_cond_init(&pool->more, NULL) == 0);
    pool->limit = queue_limit;
    (void)snprintf(pool->name, sizeof pool->name, "%s", name);
    /* Signals are for the main thread. */
    sigset_t all;
    sigset_t before;
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    for (; pool->thread_count < threads; pool->thread_count++)
        CHECK(pthread_create(&pool->threads[pool->thread_count], NULL, run, pool) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return pool;
}

enum status work_pool_submit(struct work_pool *pool, struct work *work)
{
    enum status status = STATUS_FULL;
    CHECK(pthread_mutex_lock(&pool->lock) == 0);
    CHECK(!pool->ending);
    if (pool->depth < pool->limit) {
        work->next = NULL;
        if (pool->last == NULL)
            pool->first = work;
        else
            pool->last->next = work;
        pool->last = work;
        pool->depth++;
        CHECK(pthread_cond_signal(&pool->more) == 0);
        status = STATUS_OK;
    }
    CHECK(pthread_mutex_unlock(&pool->lock) == 0);
    return status;
}

size_t work_pool_depth(struct work_pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->lock) == 0);
    size_t depth = pool->depth;
    CHECK(pthread_mutex_unlock(&pool->lock) == 0);
    return depth;
}

void work_pool_destroy(struct work_pool **pool)
{
    if (*pool == NULL)
        return;
    CHECK(pthread_mutex_lock(&(*pool)->lock) == 0);
    (*pool)->ending = true;
    CHECK(pthread_cond_broadcast(&(*pool)->more) == 0);
    CHECK(pthread_mutex_unlock(&(*pool)->lock) == 0);
    for (size_t i = 0; i < (*pool)->thread_count; i++)
        CHECK(pthread_join((*pool)->threads[i], NULL) == 0);
    CHECK(pthread_cond_destroy(&(*pool)->more) == 0);
    CHECK(pthread_mutex_destroy(&(*pool)->lock) == 0);
    memory_free(*pool);
    *pool = NULL;
}
