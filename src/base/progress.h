#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Reports the progress of long work. `at` is called often, in the thread of the work; NULL: there
 * are no reports. `what` is the noun that is counted ("entries") or the name of the step. `done` is
 * 0 where nothing can be counted, `total` is 0 where it is not known.
 */
struct progress_watch {
    void (*at)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
};

/* `watch` may be NULL. */
static inline void progress_tell(const struct progress_watch *watch, const char *what,
                                 uint64_t done, uint64_t total)
{
    if (watch != NULL && watch->at != NULL)
        watch->at(watch->context, what, done, total);
}
