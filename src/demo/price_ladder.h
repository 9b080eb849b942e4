#ifndef CROUPIER_DEMO_PRICE_LADDER_H
#define CROUPIER_DEMO_PRICE_LADDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The price ladder of betting exchanges: decimal odds move in ticks, 1.01 to 2 by 0.01, 2 to 3 by
 * 0.02, 3 to 4 by 0.05, 4 to 6 by 0.1, 6 to 10 by 0.2, 10 to 20 by 0.5, 20 to 30 by 1, 30 to 50
 * by 2, 50 to 100 by 5, 100 to 1000 by 10. A price here is an integer of hundredths; a tick is its
 * place on the ladder. Pure functions.
 */
#define PRICE_LADDER_TICKS 350U /* ticks 0 (1.01) to 349 (1000) */

/* The price of a tick (CHECKed to be on the ladder), in hundredths: 0 → 101, 99 → 200, 100 →
 * 202. */
uint32_t price_ladder_at(uint32_t tick);

/* The highest tick whose price is not above `hundredths`; the first tick for anything below it. */
uint32_t price_ladder_floor(uint32_t hundredths);

/* Writes hundredths as the shortest decimal number ("1.8", "2", "1.01"). */
void price_write(uint32_t hundredths, char *out, size_t size);

#endif
