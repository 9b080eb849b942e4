/* Fixed windows: a start and a count for each address; see lockout.h. */
#include "console/lockout.h"

#include <string.h>

#include "base/memory.h"

#define ADDRESSES 256

struct window {
    uint64_t began_ms;
    uint32_t failures; /* 0: no window */
};

struct lockout {
    struct {
        struct address address;
        struct window window;
    } of[ADDRESSES];
};

struct lockout *lockout_create(void)
{
    return memory_alloc_zeroed(1, sizeof(struct lockout));
}

void lockout_destroy(struct lockout **lockout)
{
    memory_free(*lockout);
    *lockout = NULL;
}

static bool is_over(const struct window *window, uint64_t now_ms)
{
    return window->failures == 0 || now_ms - window->began_ms >= LOCKOUT_WINDOW_MS;
}

static void count(struct window *window, uint64_t now_ms)
{
    if (is_over(window, now_ms))
        *window = (struct window){.began_ms = now_ms};
    window->failures++;
}

static uint32_t seconds_left(const struct window *window, uint64_t now_ms)
{
    if (is_over(window, now_ms) || window->failures < LOCKOUT_FAILURES_MAX)
        return 0;
    return (uint32_t)((window->began_ms + LOCKOUT_WINDOW_MS - now_ms + 999) / 1000);
}

/* Counted as one: an IPv4 address, or the network that an IPv6 address is in. */
static struct address client_of(const struct address *address)
{
    static const uint8_t v4[12] = {[10] = 0xFF, [11] = 0xFF};
    struct address client = *address;
    if (memcmp(client.bytes, v4, sizeof v4) != 0)
        memset(client.bytes + 8, 0, 8);
    return client;
}

uint32_t lockout_seconds(const struct lockout *lockout, const struct address *address,
                         uint64_t now_ms)
{
    struct address client = client_of(address);
    for (size_t i = 0; i < ADDRESSES; i++)
        if (address_equals(&lockout->of[i].address, &client))
            return seconds_left(&lockout->of[i].window, now_ms);
    return 0;
}

void lockout_note_failure(struct lockout *lockout, const struct address *address, uint64_t now_ms)
{
    struct address client = client_of(address);
    size_t chosen = 0; /* the client's own, else the one whose window began first */
    for (size_t i = 0; i < ADDRESSES; i++) {
        if (lockout->of[i].window.failures > 0 &&
            address_equals(&lockout->of[i].address, &client)) {
            chosen = i;
            break;
        }
        if (lockout->of[i].window.failures == 0 ||
            (lockout->of[chosen].window.failures > 0 &&
             lockout->of[i].window.began_ms < lockout->of[chosen].window.began_ms))
            chosen = i;
    }
    if (!address_equals(&lockout->of[chosen].address, &client))
        lockout->of[chosen].window = (struct window){0};
    lockout->of[chosen].address = client;
    count(&lockout->of[chosen].window, now_ms);
}
