/*
 * A wall clock that is wrong by CROUPIER_WRONG_CLOCK seconds, for a program that is started with
 * this in LD_PRELOAD. Time that only counts (CLOCK_MONOTONIC) is left alone.
 */
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *seconds = getenv("CROUPIER_WRONG_CLOCK");
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && seconds != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += strtol(seconds, NULL, 10);
    return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
