#pragma once

#include "stores/odds.h"

/*
 * A lease: a part of a client's budget for the current window, drawn from the store for this server
 * alone. Windows are fixed and aligned to the epoch by the store's clock. All leases of one window
 * together never exceed the budget, even if the servers' clocks differ. Units that are not spent by
 * the window's end are void. The engine chooses how much it grants: at least `demand` if so much is
 * left, else a share that shrinks towards the end. So little is stranded with a server that goes
 * idle, and one server alone can draw the whole budget in a few dozen leases.
 *
 * The server reports its knowledge, in case the store has lost its own (restarted empty, failed
 * over): the use that it saw last, and the units that it has admitted without the store, which the
 * store adds. Both hold for the window that began at `since`, and the store ignores them in any
 * other.
 *
 * Always asynchronous. Returns STATUS_PENDING; then `done` is called once, later, on a thread of
 * the engine's, within the store's deadline. `result` is STATUS_OK, STATUS_UNAVAILABLE,
 * STATUS_TIMEOUT (the store may or may not have granted) or STATUS_MALFORMED (the value under that
 * name, or the answer, is malformed). Any other returned status: the request was not sent, and
 * `done` is not called. The struct stays the caller's, and must live until `done`.
 */
#define ODDS_LEASE_CLIENT_SIZE 64

struct odds_lease {
    char client[ODDS_LEASE_CLIENT_SIZE]; /* whose budget; no spaces; NUL-terminated */
    uint32_t window_seconds;             /* above 0 */
    uint32_t limit;                      /* the budget of a window, above 0 */
    uint32_t demand;                     /* requests that wait for it now, above 0 */
    uint32_t since;                      /* start of a window, seconds since the epoch */
    uint32_t since_used;                 /* drawn units, as the store reported */
    uint32_t since_spent;                /* admitted in it without the store, not reported yet */
    void (*done)(struct odds_lease *lease);
    /* the answer */
    enum status result;
    uint32_t granted;     /* may be 0 */
    int64_t left;         /* to draw after that; negative: more was drawn than `limit` */
    uint32_t start;       /* since when draws are counted: tells one window from the next */
    uint64_t left_us;     /* from the moment the store answered to the end of the window */
    int64_t store_ms;     /* the store's wall clock at that moment */
    uint64_t answered_ns; /* our monotonic clock when the answer came */
};

/* Does this engine have leases? Without them each server limits for itself. */
bool odds_store_has_leases(const struct odds_store *store);
MUST_CHECK enum status odds_store_lease(struct odds_store *store, struct odds_lease *lease);
