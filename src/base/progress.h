#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * How far something long is. `at` runs often, in the thread of the work. `what` is what is counted
 * ("entries"), or the name of the step; `done` is 0 where nothing can be counted, `total` where it is
 * not known. Without `at` there is no one to tell.
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
