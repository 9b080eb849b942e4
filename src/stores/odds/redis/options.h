#pragma once

#include "base/log.h"
#include "stores/odds/redis/location.h"

struct redis_link_options {
    const struct redis_location *location; /* borrowed */
    uint32_t timeout_ms;
    const char *prefix; /* of the keys */
    bool track;         /* or, if the server refuses that, ask */
    uint32_t ask_ms;    /* how often `ask` is called */
    struct log *log;
    /* All are called on the I/O thread, by a link that tracks or asks. */
    void *owner;
    void (*changed)(void *owner, const char *key, size_t size); /* NULL: perhaps all keys */
    /* Values may have changed, and the server does not report it. */
    void (*ask)(void *owner);
    /* The link calls it at each heartbeat, after redis_link_wake, and at the last moment to submit
     * a call. */
    void (*work)(void *owner);
};
