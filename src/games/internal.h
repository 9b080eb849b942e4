#ifndef CROUPIER_GAMES_INTERNAL_H
#define CROUPIER_GAMES_INTERNAL_H

#include <stdatomic.h>

#include "games/games.h"

/* What the refresher (games.c) and the desks (games_pages.c) share. Private to this folder. */

struct games_snapshot {
    struct games_table *table;
    uint64_t generation; /* 1, 2, 3, … */
    uint32_t references; /* under the lock */
};

uint64_t games_generation(struct games *games); /* 0: no table yet */

/* Is what is current, or has been published since, confirmed? Call it before games_generation. */
bool games_confirmed(struct games *games, uint64_t now_mono_ms);

/* Lets go of `*held` (may be NULL) and, with `take`, takes hold of the current snapshot. */
void games_exchange(struct games *games, struct games_snapshot **held, bool take);

#endif
