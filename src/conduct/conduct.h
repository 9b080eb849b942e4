#pragma once

#include "records/conduct.h"
#include "stores/platform.h"

/*
 * Takes the facts about sandbox callers' requests (records/conduct.h) to the platform store, once a
 * second, in a thread that has no connection while there are none. Beyond CONDUCT_WAITING_MAX facts
 * that wait for the store, further ones are only counted, and the next one that is kept has their
 * number. A crash loses at most what waits.
 */

#define CONDUCT_WAITING_MAX 4096

struct conduct;

/* `store` is opened to write; its `uri` and `log` are borrowed. */
struct conduct *conduct_create(const struct platform_store_options *store);
/* Call it when nothing adds facts any more. Writes what waits, if the store can be written. */
void conduct_destroy(struct conduct **conduct);

/* Any thread. Does not wait for the store; sets `lost`. */
void conduct_add(struct conduct *conduct, struct conduct_fact *fact);

/* Facts that wait for the store, and how many found no room since the start. Any thread. */
struct conduct_counts {
    uint64_t waiting, dropped;
};
struct conduct_counts conduct_count(struct conduct *conduct);
