#pragma once

#include "stores/odds_feed.h"

/*
 * A list of changes that are published together (odds_store_publish), in their order: the last
 * change to a value counts. Commands, the stream, the simulator and copies of a store use it.
 * Documents are borrowed until they are published. Zeroed, it is empty. Threads: one at a time.
 */
struct feed_publication {
    struct odds_change *changes;
    size_t count, room;
};

void feed_publication_free(struct feed_publication *publication);
void feed_publication_add(struct feed_publication *publication, const struct odds_change *change);

/* Withdraws the odds of all events of the sport that the store has or that were added before, but
 * those that are to stay: `stays` may be NULL. */
typedef bool feed_odds_stay(const void *context, enum sport sport, const struct event_id *event);
MUST_CHECK enum status feed_publication_withdraw_odds(struct feed_publication *publication,
                                                      struct odds_store *store, enum sport sport,
                                                      feed_odds_stay *stays, const void *context,
                                                      struct error *error);

/* Withdraws a catalog, and the odds of all events of the sport that the store has. */
MUST_CHECK enum status feed_publication_withdraw_sport(struct feed_publication *publication,
                                                       struct odds_store *store, enum sport sport,
                                                       struct error *error);
