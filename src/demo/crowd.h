#ifndef CROUPIER_DEMO_CROWD_H
#define CROUPIER_DEMO_CROWD_H

#include "base/log.h"
#include "demo/simulate.h"

/*
 * The customers' customers of `croupier demo`, so that there is something to see: players who
 * launch the demo's game and play it for money, by the API like any others, and look at events,
 * whose odds are therefore moved every interval. They play through a balance that they were given,
 * and are given another one then.
 *
 * A thread of its own, with an HTTP client of its own; a demo that does not answer is tried again.
 */
struct crowd;

struct crowd_options {
    const char *api;               /* "http://127.0.0.1:8080/api/v1"; copied, as the key is */
    const char *key;               /* of a customer with the casino */
    unsigned players;              /* 1 to CROWD_MAX */
    struct odds_store *odds;       /* borrowed, in which interest is noted */
    struct simulation *simulation; /* borrowed: which events there are */
};
#define CROWD_MAX 50U

struct crowd *crowd_start(const struct crowd_options *options);
/* Within the 2 seconds that a call may take. */
void crowd_stop(struct crowd **crowd);

#endif
