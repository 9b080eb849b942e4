/* See threads.h. */
#include "base/threads.h"

#include "base/clock.h"
#include "base/file.h"

#define NAME_SIZE 16 /* of Linux */

static int start(uv_thread_t *thread, const char *name, void (*run)(void *argument), void *argument)
{
    char shown[NAME_SIZE];
    sigset_t all;
    sigset_t before;
    /* A thread begins with its maker's mask. */
    CHECK(sigfillset(&all) == 0);
    /* A fault where this is blocked ends the process, whatever handler there is. */
    CHECK(sigdelset(&all, SIGBUS) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int result = uv_thread_create(thread, run, argument);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    (void)snprintf(shown, sizeof shown, "%s", name);
    if (result == 0)
        (void)pthread_setname_np(*thread, shown);
    return result;
}

void thread_start(uv_thread_t *thread, const char *name, void (*run)(void *argument),
                  void *argument)
{
    int result = start(thread, name, run, argument);
    if (result == 0)
        return;
    /* The log may be the thread that is missing. */
    (void)fprintf(stderr,
                  "croupier: thread %s cannot be started: %s; raise the limits of memory and "
                  "processes (ulimit -v, ulimit -u; MemoryMax and TasksMax of systemd)\n",
                  name, uv_strerror(result));
    _exit(1);
}

bool thread_start_detached(const char *name, void (*run)(void *argument), void *argument)
{
    uv_thread_t thread;
    bool started = start(&thread, name, run, argument) == 0;
    if (started)
        CHECK(pthread_detach(thread) == 0);
    return started;
}

/* sched-stats.rst of Linux: time on a processor, time ready and waiting, both in ns; turns. */
uint64_t thread_starved_ms(void)
{
    struct buffer line = {0};
    uint64_t waited_ns = 0;
    if (file_read("/proc/thread-self/schedstat", 64, &line) == 0) {
        struct text rest = buffer_text(&line);
        (void)text_cut(&rest, ' ');
        if (text_to_u64(text_cut(&rest, ' '), UINT64_MAX, &waited_ns) != STATUS_OK)
            waited_ns = 0;
    }
    buffer_free(&line);
    return waited_ns / 1000000;
}

bool condition_wait_until(uv_cond_t *condition, uv_mutex_t *lock, uint64_t deadline_ns)
{
    uint64_t now = clock_monotonic_ns();
    if (now >= deadline_ns)
        return false;
    (void)uv_cond_timedwait(condition, lock, deadline_ns - now);
    return true;
}

/* ---- a thread until it is stopped ------------------------------------------------------------ */

void background_start(struct background *background, const char *name, void (*run)(void *argument),
                      void *argument)
{
    CHECK(uv_mutex_init(&background->lock) == 0);
    CHECK(uv_cond_init(&background->wake) == 0);
    background->stopping = false;
    thread_start(&background->thread, name, run, argument);
}

bool background_sleep(struct background *background, uint64_t deadline_ns)
{
    uv_mutex_lock(&background->lock);
    while (!background->stopping &&
           condition_wait_until(&background->wake, &background->lock, deadline_ns)) {
    }
    bool stopping = background->stopping;
    uv_mutex_unlock(&background->lock);
    return stopping;
}

void background_stop(struct background *background)
{
    uv_mutex_lock(&background->lock);
    background->stopping = true;
    uv_cond_signal(&background->wake); /* it alone waits for it */
    uv_mutex_unlock(&background->lock);
    CHECK(uv_thread_join(&background->thread) == 0);
    uv_cond_destroy(&background->wake);
    uv_mutex_destroy(&background->lock);
}
