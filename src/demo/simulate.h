#ifndef CROUPIER_DEMO_SIMULATE_H
#define CROUPIER_DEMO_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "records/sport.h"
#include "stores/odds.h"

/*
 * A feed that is not there: invented events of all five sports that begin, are played, are settled
 * and make way for new ones, published as a real exchange feed publishes.
 *
 * Time is the caller's: the state moves by the time that is passed in, in steps, and the same seed
 * and times give the same documents. What is published, and when:
 *
 *   a sport's catalog   about once a minute, and when its events or a status change
 *   an event's odds     every interval while it is polled (interest within 10 s);
 *                       else about once a minute, and when it begins, closes and settles
 *
 * Everything that is due at one tick is one publication. A new event's odds are published with the
 * catalog that lists it, and those of an event that left are withdrawn with it.
 *
 * Threads: a struct simulator belongs to one thread at a time.
 */
struct simulator;

#define SIMULATOR_EVENTS_MAX 1000U
#define SIMULATOR_EVENTS_DEFAULT 24U
#define SIMULATOR_INTERVAL_DEFAULT_MS 1000U
#define SIMULATOR_INTERVAL_LEAST_MS 50U
#define SIMULATOR_INTERVAL_MOST_MS 60000U

struct simulator_options {
    uint64_t seed;
    sport_set sports;
    uint32_t events;      /* of each sport, at most SIMULATOR_EVENTS_MAX */
    uint32_t interval_ms; /* between two publications of an event that is polled */
    bool standing;        /* each sport's first event starts a week later, open to be watched */
};

struct simulator *simulator_create(const struct simulator_options *options, int64_t now_ms);
void simulator_destroy(struct simulator **simulator);

/* What has happened since the simulator was made. */
struct simulator_facts {
    uint64_t catalogs;                     /* published */
    uint64_t markets;                      /* odds documents published */
    uint64_t bytes;                        /* published */
    uint64_t retired;                      /* events that have left */
    uint32_t events;                       /* now */
    uint32_t in_play;                      /* now */
    uint32_t polled;                       /* now */
    bool failing;                          /* of a simulation: the last tick could not publish */
    struct event_id standing[SPORT_COUNT]; /* the events of options.standing */
};
void simulator_facts(const struct simulator *simulator, struct simulator_facts *facts);

/* ---- in steps, for tests and other publishers ------------------------------------------------ */

/* A client asked for the event then. Unknown events are ignored. */
void simulator_note_interest(struct simulator *simulator, enum sport sport,
                             const struct event_id *event, int64_t requested_ms);

/* Moves everything on to `now_ms` and gives what is due, which is valid until the next call. When it
 * could not be published, simulator_failed makes everything due again. A clock that went back moves
 * nothing; more than two minutes missed (a machine that slept) are left out. */
void simulator_advance(struct simulator *simulator, int64_t now_ms,
                       const struct odds_change **changes, size_t *count);
void simulator_failed(struct simulator *simulator);

/* ---- into a store ---------------------------------------------------------------------------- */

/* Reads interest, advances, publishes. The first tick publishes everything, and behind it withdraws
 * what else the store holds of the simulated sports: a client never finds a sport without its
 * catalog in between. After a failure the next tick tries again. */
MUST_CHECK enum status simulator_tick(struct simulator *simulator, int64_t now_ms,
                                      struct odds_store *store, struct error *error);

/*
 * A thread that ticks every interval, into a store that it shares (borrowed, as is the log).
 * Returns when the first publication is complete; STATUS of it when it failed, and no thread runs
 * then. While the store is away it goes on trying; each outage is logged once.
 */
struct simulation;
MUST_CHECK enum status simulation_start(struct simulation **simulation,
                                        const struct simulator_options *options,
                                        struct odds_store *store, struct log *log,
                                        struct error *error);
void simulation_facts(struct simulation *simulation,
                      struct simulator_facts *facts); /* any thread */
/* Within 100 ms, and the time a publication takes that has begun. */
void simulation_stop(struct simulation **simulation);

#endif
