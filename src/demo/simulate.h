#pragma once

#include "stores/odds_feed.h"

/*
 * A simulated feed: invented events of all five sports that begin, are played, are settled and are
 * replaced by new ones, published as a real exchange feed publishes.
 *
 * The caller gives the time: the state advances in steps to the time passed in, and the same seed
 * and times give the same documents. The simulator publishes:
 *
 *   a sport's catalog   about once a minute, and when its events or a status change
 *   an event's odds     every interval while it is polled (interest within 10 s),
 *                       else about once a minute, and when its status changes
 *
 * All that is due at one tick is one publication. A new event's odds are published with the catalog
 * that lists it; the odds of an event that left are withdrawn with the catalog that no longer lists
 * it.
 *
 * Threads: a struct simulator belongs to one thread at a time, or to its own (simulator_start).
 */
struct simulator;

#define SIMULATOR_EVENTS_MAX 1000U
#define SIMULATOR_STANDING_ID 34000001U
#define SIMULATOR_EVENTS_DEFAULT 24U
#define SIMULATOR_INTERVAL_DEFAULT_MS 1000U
#define SIMULATOR_INTERVAL_LEAST_MS 50U
#define SIMULATOR_INTERVAL_MOST_MS 60000U

struct simulator_options {
    uint64_t seed;
    sport_set sports;
    uint32_t events;      /* of each sport, at most SIMULATOR_EVENTS_MAX */
    uint32_t interval_ms; /* between two publications of an event that is polled */
    bool standing; /* each sport's first event starts a week later, with open markets; its id is
                    * SIMULATOR_STANDING_ID plus the sport */
    sport_set interrupted; /* sports whose feed stops for the second five of each ten minutes */
};

struct simulator *simulator_create(const struct simulator_options *options, int64_t now_ms);
/* Stops its thread, if there is one. It takes 100 ms at most, plus the time of a publication that
 * has begun. */
void simulator_destroy(struct simulator **simulator);

/* Totals since the simulator was created, and its present state. */
struct simulator_facts {
    uint64_t catalogs;                     /* published */
    uint64_t markets;                      /* odds documents published */
    uint64_t bytes;                        /* published */
    uint64_t retired;                      /* events that have left */
    uint32_t events;                       /* now */
    uint32_t in_play;                      /* now */
    uint32_t polled;                       /* now */
    bool failing;                          /* of the thread: the last tick failed to publish */
    struct event_id standing[SPORT_COUNT]; /* the events of options.standing */
};
/* Any thread; waits for a tick that has begun. */
void simulator_facts(struct simulator *simulator, struct simulator_facts *facts);

/* ---- in steps, for tests and other publishers ------------------------------------------------ */

/* Notes that a client asked for the event at `requested_ms`. Ignores unknown events. */
void simulator_note_interest(struct simulator *simulator, enum sport sport,
                             const struct event_id *event, int64_t requested_ms);

/* Advances all events to `now_ms` and gives the changes that are due, valid until the next call. If
 * publishing them fails, simulator_failed makes everything due again. If the clock went back, or
 * jumped by more than two minutes (the machine slept), the events stay where they are and continue
 * from there. */
void simulator_advance(struct simulator *simulator, int64_t now_ms,
                       const struct odds_change **changes, size_t *count);
void simulator_failed(struct simulator *simulator);

/* ---- into a store ---------------------------------------------------------------------------- */

/* Reads interest, advances, publishes. The first tick publishes everything, and at the end of that
 * publication withdraws the store's other events of the simulated sports, so that a client never
 * finds a sport without its catalog. After a failure the next tick tries again. */
MUST_CHECK enum status simulator_tick(struct simulator *simulator, int64_t now_ms,
                                      struct odds_store *store, struct error *error);

/*
 * Starts a thread that ticks every interval, into a store that it shares (borrowed, as is the log).
 * Returns when the first publication is complete. If that fails, returns its status, and no thread
 * runs. While the store is unavailable the thread retries; it logs each outage once.
 */
MUST_CHECK enum status simulator_start(struct simulator *simulator, struct odds_store *store,
                                       struct log *log, struct error *error);
