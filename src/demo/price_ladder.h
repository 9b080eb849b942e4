#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The price ladder of betting exchanges: decimal odds move in ticks. From 1.01 to 2 a tick is 0.01;
 * to 3, 0.02; to 4, 0.05; to 6, 0.1; to 10, 0.2; to 20, 0.5; to 30, 1; to 50, 2; to 100, 5; to
 * 1000, 10. A price is an integer number of hundredths; a tick is its index on the ladder. Pure
 * functions.
 */
#define PRICE_LADDER_TICKS 350U /* ticks 0 (1.01) to 349 (1000) */

/* The price of a tick (CHECKed to be on the ladder), in hundredths: 0 → 101, 99 → 200, 100 →
 * 202. */
uint32_t price_ladder_at(uint32_t tick);

/* The highest tick whose price is not above `hundredths`; the first tick for anything below it. */
uint32_t price_ladder_floor(uint32_t hundredths);

/* Writes hundredths as the shortest decimal number ("1.8", "2", "1.01"). */
void price_write(uint32_t hundredths, char *out, size_t size);
