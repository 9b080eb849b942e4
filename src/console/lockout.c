/* Fixed windows: a start and a count for each address, and for all; see lockout.h. */
#include "console/lockout.h"

#include <string.h>

#include "base/memory.h"

#define ADDRESSES 256

struct window {
    uint64_t began_ms;
    uint32_t failures; /* 0: no window */
};

struct lockout {
    struct window all;
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

static uint32_t seconds_left(const struct window *window, uint32_t most, uint64_t now_ms)
{
    if (is_over(window, now_ms) || window->failures < most)
        return 0;
    return (uint32_t)((window->began_ms + LOCKOUT_WINDOW_MS - now_ms + 999) / 1000);
}

static bool same(const struct address *a, const struct address *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

uint32_t lockout_seconds(const struct lockout *lockout, const struct address *address,
                         uint64_t now_ms)
{
    uint32_t seconds = seconds_left(&lockout->all, LOCKOUT_ALL_FAILURES_MAX, now_ms);
    for (size_t i = 0; i < ADDRESSES && seconds == 0; i++)
        if (same(&lockout->of[i].address, address))
            seconds = seconds_left(&lockout->of[i].window, LOCKOUT_FAILURES_MAX, now_ms);
    return seconds;
}

void lockout_note_failure(struct lockout *lockout, const struct address *address, uint64_t now_ms)
{
    size_t chosen = 0; /* the address's own, else the one that counts least */
    for (size_t i = 0; i < ADDRESSES; i++) {
        if (lockout->of[i].window.failures > 0 && same(&lockout->of[i].address, address)) {
            chosen = i;
            break;
        }
        if (lockout->of[i].window.failures == 0 ||
            (lockout->of[chosen].window.failures > 0 &&
             lockout->of[i].window.began_ms < lockout->of[chosen].window.began_ms))
            chosen = i;
    }
    if (!same(&lockout->of[chosen].address, address))
        lockout->of[chosen].window = (struct window){0};
    lockout->of[chosen].address = *address;
    count(&lockout->of[chosen].window, now_ms);
    count(&lockout->all, now_ms);
}
