#pragma once

#include "demo/demo.h"
#include "demo/simulate.h"

/*
 * The players of `croupier demo`. They launch the demo's game and play it for money through the
 * API, as real players do. A player whose balance is too low for a stake gets more money. The crowd
 * also calls what is refused or declined, so that there are denials and declines to look at, and
 * notes interest in each sport's standing event, so that the simulator publishes its odds
 * every interval.
 *
 * The crowd has its own thread and HTTP client, and retries when the demo does not answer.
 */
struct crowd;

struct crowd_options {
    const char *api;              /* "http://127.0.0.1:8080/api/v1"; copied */
    const struct demo_keys *keys; /* borrowed, as are the others */
    unsigned players;             /* 1 to CROWD_MAX */
    struct odds_store *odds;      /* the crowd notes interest in it */
    struct simulator *simulator;  /* gives the standing events */
};
#define CROWD_MAX 50U

struct crowd *crowd_start(const struct crowd_options *options);
/* Takes at most 2 seconds, the limit of a call. */
void crowd_stop(struct crowd **crowd);
