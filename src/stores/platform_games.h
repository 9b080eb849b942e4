#pragma once

#include "records/records.h"
#include "stores/platform.h"

/* Providers, games and customers' lists of games in the platform store (platform.h). */

/*
 * Every change of a provider, a game or a list of games takes the next number of a counter of its
 * own (platform_games_revision). The whole is small (thousands of games), so a copy is read
 * again as a whole when the number has moved: platform_games_read, from one snapshot.
 */

/* The result of an import; an unchanged game is left alone, updated_ms included. */
struct games_put_result {
    size_t added, changed, unchanged;
};
/* Adds or replaces by id, in one transaction: all or none. `enabled` of a game that is there stays
 * as it is unless the same index of `set_enabled` (NULL: each) is true, and so do its blocked
 * countries if the record says so. NOT_FOUND: a provider that is not there. FULL: there would be
 * more than GAMES_MAX. */
MUST_CHECK enum status platform_games_put(struct platform_store *store,
                                          const struct game_record *records,
                                          const bool *set_enabled, size_t count, int64_t now_ms,
                                          struct games_put_result *result, struct error *error);
/* Changes `enabled`, the blocked countries and updated_ms. NOT_FOUND. EXISTS: the stored row has no
 * longer the revision of `game`. */
MUST_CHECK enum status platform_game_set(struct platform_store *store,
                                         const struct game_record *game, int64_t now_ms,
                                         struct error *error);

/* Replaces the customer's list. NOT_FOUND: no such customer, or a game that is not there
 * (named). */
MUST_CHECK enum status platform_game_policy_put(struct platform_store *store,
                                                const struct game_policy_record *record,
                                                struct error *error);

MUST_CHECK enum status platform_games_revision(struct platform_store *store, uint64_t *revision,
                                               struct error *error);

/* Everything that the visitor wants, from one snapshot whose revision is then stored: providers
 * by id, then games by id, then customers' lists. It must not call the store. */
MUST_CHECK enum status platform_games_read(struct platform_store *store,
                                           const struct record_visitor *visitor, uint64_t *revision,
                                           struct error *error);
