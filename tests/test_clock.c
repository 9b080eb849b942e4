/*
 * See test_clock.h. Linked into a unit test, or loaded into a server by LD_PRELOAD:
 * CROUPIER_TEST_CLOCK then names a file of two 64-bit numbers, nanoseconds that the monotonic and
 * the wall clock are ahead of the machine's, which the test writes while the server runs
 * (tests/service/croupier.py, Clock).
 *
 * The kernel's own waiting knows nothing of it. Calls that wait with a time limit therefore wait
 * for SLICE_MS at most and look again.
 */
#include "test_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef TEST_CLOCK_PRELOADED
#include <dlfcn.h>
#include <pthread.h>
#endif

#define SLICE_MS 5
#define SECOND_NS 1000000000LL

struct offsets {
    _Atomic int64_t monotonic_ns, wall_ns;
};

static struct offsets own;
static struct offsets *offsets = &own;
static bool stopped;
static int64_t stopped_ns, stopped_wall_ns; /* when, by the machine's clocks */

static int64_t machine_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    (void)syscall(SYS_clock_gettime, clock, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static int64_t now_ns(clockid_t clock)
{
    switch (clock) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
        return (stopped ? stopped_ns : machine_ns(clock)) + atomic_load(&offsets->monotonic_ns);
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return (stopped ? stopped_wall_ns : machine_ns(clock)) + atomic_load(&offsets->wall_ns);
    default:
        return machine_ns(clock);
    }
}

void test_clock_stop(void)
{
    if (!stopped) {
        stopped_ns = machine_ns(CLOCK_MONOTONIC);
        stopped_wall_ns = machine_ns(CLOCK_REALTIME);
    }
    stopped = true;
}

void test_clock_advance_ms(uint64_t ms)
{
    (void)atomic_fetch_add(&offsets->monotonic_ns, (int64_t)ms * 1000000);
    (void)atomic_fetch_add(&offsets->wall_ns, (int64_t)ms * 1000000);
}

uint64_t test_clock_real_ms(void)
{
    return (uint64_t)machine_ns(CLOCK_MONOTONIC) / 1000000U;
}

/* ---- in the place of libc's ------------------------------------------------------------------ */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns = now_ns(clock);
    *now = (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int64_t ns = now_ns(CLOCK_REALTIME);
    (void)zone;
    *now = (struct timeval){(time_t)(ns / SECOND_NS), (suseconds_t)(ns % SECOND_NS / 1000)};
    return 0;
}

time_t time(time_t *at)
{
    time_t now = (time_t)(now_ns(CLOCK_REALTIME) / SECOND_NS);
    if (at != NULL)
        *at = now;
    return now;
}

#ifdef TEST_CLOCK_PRELOADED

static int wait_in_slices(int descriptor, struct epoll_event *events, int room, int timeout_ms,
                          const sigset_t *signals)
{
    int64_t until_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)timeout_ms * 1000000;
    for (;;) {
        int64_t left_ms = (until_ns - now_ns(CLOCK_MONOTONIC) + 999999) / 1000000;
        int slice_ms = timeout_ms < 0 || left_ms > SLICE_MS ? SLICE_MS
                       : left_ms > 0                        ? (int)left_ms
                                                            : 0;
        long count = syscall(SYS_epoll_pwait, descriptor, events, room,
                             timeout_ms < 0 ? -1 : slice_ms, signals, 8);
        if (count != 0 || left_ms <= slice_ms)
            return (int)count;
    }
}

int epoll_pwait(int descriptor, struct epoll_event *events, int room, int timeout_ms,
                const sigset_t *signals)
{
    return wait_in_slices(descriptor, events, room, timeout_ms, signals);
}

int epoll_wait(int descriptor, struct epoll_event *events, int room, int timeout_ms)
{
    return wait_in_slices(descriptor, events, room, timeout_ms, NULL);
}

static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* Conditions of croupier's are on the monotonic clock. Who is woken early asks again. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    int64_t until_ns = (int64_t)until->tv_sec * SECOND_NS + until->tv_nsec;
    if (now_ns(CLOCK_MONOTONIC) >= until_ns)
        return ETIMEDOUT;
    int64_t slice_ns = machine_ns(CLOCK_MONOTONIC) + SLICE_MS * 1000000LL;
    int64_t machine_until_ns = until_ns - atomic_load(&offsets->monotonic_ns);
    int64_t first_ns = slice_ns < machine_until_ns ? slice_ns : machine_until_ns;
    struct timespec first = {.tv_sec = (time_t)(first_ns / SECOND_NS),
                             .tv_nsec = (long)(first_ns % SECOND_NS)};
    int result = real_timedwait(condition, mutex, &first);
    return result == ETIMEDOUT && now_ns(CLOCK_MONOTONIC) < until_ns ? 0 : result;
}

__attribute__((constructor)) static void begin(void)
{
    void *found = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    memcpy(&real_timedwait, &found, sizeof found);
    const char *path = getenv("CROUPIER_TEST_CLOCK");
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *shared = file >= 0 ? mmap(NULL, sizeof own, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (shared != MAP_FAILED)
        offsets = shared;
    if (file >= 0)
        (void)close(file);
}

#endif
