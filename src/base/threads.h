#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Additions to libuv's threads, mutexes and conditions. libuv's calls end the process on misuse, so
 * callers check only init and join. */

/* Signals are for the main thread: this one has all of them blocked. `name` is copied and shown by
 * the system, 15 characters of it. Where the system gives no more threads the process ends, with a
 * line on stderr, as it does without memory. */
void thread_start(uv_thread_t *thread, const char *name, void (*run)(void *argument),
                  void *argument);

/* Starts a detached thread in the same way. False: the system gives none. The thread may end before
 * this returns. */
bool thread_start_detached(const char *name, void (*run)(void *argument), void *argument);

/* How long this thread has been ready to run and had no processor, since it began; 0 where the
 * kernel does not say. */
uint64_t thread_starved_ms(void);
/* Waits for `condition`, with the lock held, until `deadline_ns` by clock_monotonic_ns at most.
 * False, without waiting, when that has passed. It may wake for nothing, as all conditions do:
 *
 *     while (!done && condition_wait_until(&changed, &lock, deadline_ns)) {
 *     } */
bool condition_wait_until(uv_cond_t *condition, uv_mutex_t *lock, uint64_t deadline_ns);

/*
 * A thread that goes on until its owner stops it, with the lock and the condition that it waits by.
 * The owner may keep more under the lock, and signals `wake` when it has changed something of that.
 */
struct background {
    uv_thread_t thread;
    uv_mutex_t lock; /* guards `stopping`, and what the owner says */
    uv_cond_t wake;
    bool stopping;
};

/* Makes lock and condition, and starts the thread as thread_start does. */
void background_start(struct background *background, const char *name, void (*run)(void *argument),
                      void *argument);

/* The thread calls this without the lock; it waits until `deadline_ns`. True: the thread must
 * end. */
bool background_sleep(struct background *background, uint64_t deadline_ns);

/* Has the thread end, waits for that, and destroys lock and condition. */
void background_stop(struct background *background);
