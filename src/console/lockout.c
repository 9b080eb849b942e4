/* Fixed windows: a start and a count for each address; see lockout.h. */
#include "console/lockout.h"

/* The client's own, else an unused one, else the one that began first. */
static size_t find(const struct lockout *lockout, const struct address *client)
{
    size_t chosen = 0;
    for (size_t i = 0; i < LOCKOUT_ADDRESSES; i++) {
        const struct lockout_window *window = &lockout->windows[i];
        if (window->failures > 0 && address_equals(&window->client, client))
            return i;
        if (window->began_ms < lockout->windows[chosen].began_ms)
            chosen = i;
    }
    return chosen;
}

uint32_t lockout_note_failure(struct lockout *lockout, const struct address *address,
                              uint64_t now_ms)
{
    struct address client = address_client(address);
    struct lockout_window *window = &lockout->windows[find(lockout, &client)];
    bool is_open = window->failures > 0 && address_equals(&window->client, &client) &&
                   now_ms - window->began_ms < LOCKOUT_WINDOW_MS;
    if (!is_open)
        *window = (struct lockout_window){.client = client, .began_ms = now_ms};
    if (window->failures == LOCKOUT_FAILURES_MAX)
        return (uint32_t)((window->began_ms + LOCKOUT_WINDOW_MS - now_ms + 999) / 1000);
    window->failures++;
    return 0;
}
