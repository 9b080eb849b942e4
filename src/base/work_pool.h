#pragma once

#include <sys/queue.h>

#include "base/status.h"

/*
 * A few threads that take work from one bounded queue, first in, first out.
 *
 * A `struct work` is embedded in the job and belongs to the pool from submit until `run` is called
 * on a pool thread, once, never inside submit. A full queue is STATUS_FULL at once. Threads: any.
 *
 * While `run` runs, `thread` says on which of the pool's threads (from 0), so an array with an
 * element for each thread needs no lock.
 */
struct work {
    STAILQ_ENTRY(work) link; /* the pool's */
    void (*run)(struct work *work);
    size_t thread;
};

struct work_pool;

/* `name` (at most 15 characters) shows in top and gdb. */
struct work_pool *work_pool_create(const char *name, size_t threads, size_t queue_limit);
MUST_CHECK enum status work_pool_submit(struct work_pool *pool, struct work *work);
/* Returns how many jobs are waiting now. */
size_t work_pool_depth(struct work_pool *pool);
/* Runs what is queued, then ends the threads. No submit may follow. */
void work_pool_destroy(struct work_pool **pool);
