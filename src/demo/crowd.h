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

#define CROWD_MAX 50U

/* `api` is as "http://127.0.0.1:8080/api/v1", and is copied; the others are borrowed. There are 1
 * to CROWD_MAX `players`. The crowd notes interest in `odds`; the simulator has the standing
 * events. */
struct crowd *crowd_start(const char *api, const struct demo_keys *keys, unsigned players,
                          struct odds_store *odds, struct simulator *simulator);
/* Takes at most 2 seconds, the limit of a call. */
void crowd_stop(struct crowd **crowd);
