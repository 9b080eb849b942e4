#pragma once

#include "base/address.h"

/*
 * A bound on failed sign-ins in a minute from one address; of IPv6, from one network of 64 bits,
 * which is what one client has (RFC 6177). Beyond it, bad attempts are answered 429 until the
 * minute is over. Good links and tokens from there pass: they have 256 random bits and cannot be
 * guessed, and with a bound on them one bad client behind an address would lock the others there
 * out.
 *
 * Bounded memory: of more addresses than there is room for, the one whose minute began first is
 * forgotten. Times are of the monotonic clock. Threads: one at a time.
 */
#define LOCKOUT_WINDOW_MS 60000
#define LOCKOUT_FAILURES_MAX 5

#define LOCKOUT_ADDRESSES 256

struct lockout { /* starts as zeros; only lockout.c looks into it */
    struct lockout_window {
        struct address client;
        uint64_t began_ms;
        uint32_t failures; /* 0: no window */
    } windows[LOCKOUT_ADDRESSES];
};

/* Counts a bad attempt. 0: it is refused as such. Otherwise there were too many before it: returns
 * the seconds for which it gets 429. */
uint32_t lockout_note_failure(struct lockout *lockout, const struct address *address,
                              uint64_t now_ms);
