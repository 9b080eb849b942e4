#ifndef CROUPIER_STORES_ODDS_REDIS_OPTIONS_H
#define CROUPIER_STORES_ODDS_REDIS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "stores/odds/redis/location.h"

struct redis_link_options {
    const struct redis_location *location; /* borrowed */
    uint32_t timeout_ms;
    const char *prefix; /* of the keys */
    bool track;
    struct log *log;
    /* All are called on the I/O thread. A link that does not track never calls the first three.
     * Each may be NULL if it is not needed. */
    void *owner;
    void (*begun)(void *owner); /* connected again: all versions are outdated */
    void (*changed)(void *owner, const char *key, size_t size); /* NULL: all keys */
    void (*alarm)(void *owner);   /* the time of redis_link_set_alarm has come */
    void (*woken)(void *owner);   /* redis_link_wake was called */
    void (*second)(void *owner);  /* about once a second, connected or not */
    void (*closing)(void *owner); /* the last moment to submit a call */
};

#endif
