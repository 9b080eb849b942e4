#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Random numbers and probabilities in integers, so that one seed gives the same feed on every
 * machine. A probability is a count of parts per million ("ppm"). Pure functions, except for the
 * generator's state.
 */
#define CHANCE_ONE 1000000U

/* SplitMix64 (Steele, Lea, Flood 2014). The state is any number. */
struct chance {
    uint64_t state;
};
uint64_t chance_next(struct chance *chance);
uint32_t chance_below(struct chance *chance, uint32_t limit); /* 0 to limit - 1; limit above 0 */
int32_t chance_between(struct chance *chance, int32_t least, int32_t most); /* both included */

/* One step of SplitMix64 as a hash, for values that look random but must not change. */
uint64_t chance_mix(uint64_t value);

/* Turns weights into probabilities that sum to CHANCE_ONE (rounded down; the rest goes to the
 * largest). At least one weight is above 0, and their sum is below 2^44. */
void chance_share(const uint64_t *weights, size_t count, uint32_t *ppm);
