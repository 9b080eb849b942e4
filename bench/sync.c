/* See sync.h. Its few numbers are of the whole process, as fsync is. */
#include "sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool is_off;       /* before any thread, as */
static uint64_t least_ns; /* this */
static atomic_uint_fast64_t calls, spent_ns;

__attribute__((constructor)) static void read_environment(void)
{
    const char *wanted = getenv("CROUPIER_BENCH_SYNC");
    if (wanted == NULL)
        return;
    is_off = strcmp(wanted, "off") == 0;
    least_ns = is_off ? 0 : strtoull(wanted, NULL, 10) * 1000;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int timed(long call, int descriptor)
{
    if (is_off)
        return 0;
    uint64_t started_ns = now_ns();
    int result = (int)syscall(call, descriptor);
    int reason = errno;
    uint64_t took_ns = now_ns() - started_ns;
    if (took_ns < least_ns) {
        const struct timespec rest = {.tv_nsec = (long)(least_ns - took_ns)};
        (void)nanosleep(&rest, NULL);
        took_ns = now_ns() - started_ns;
    }
    (void)atomic_fetch_add(&spent_ns, took_ns);
    (void)atomic_fetch_add(&calls, 1);
    errno = reason;
    return result;
}

int fsync(int descriptor)
{
    return timed(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return timed(SYS_fdatasync, descriptor);
}

void sync_counted(uint64_t *counted_calls, uint64_t *nanoseconds)
{
    *counted_calls = atomic_load(&calls);
    *nanoseconds = atomic_load(&spent_ns);
}
