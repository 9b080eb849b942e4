#pragma once

#include "operator/blocks.h"
#include "stores/platform_players.h"

/*
 * Players: found by any of the names that somebody knows one by (their own id, the customer's
 * reference, a launch, a provider's id of the player), shown with their launches and blocks.
 */

#define PLAYER_LAUNCHES_SHOWN 20U
#define PLAYER_BLOCKS 3

struct player_view {
    struct player_record record; /* first */
    int64_t balance_minor;
    size_t entries;
    int64_t active_ms; /* when its last entry was made; 0: it has none */
    struct block_view
        blocks[PLAYER_BLOCKS]; /* in force: of the player, of its reference, its customer's own */
    size_t block_count;
    int64_t blocked_ms, blocked_until_ms; /* by them; 0: it is not, without an end */
    struct launch_record launches[PLAYER_LAUNCHES_SHOWN]; /* the newest, newest first */
    size_t launch_count;
    bool listed; /* its launches were not read */
};

/* Of struct player_view. Its id finds one; there are no settings. */
extern const struct resource player_resource;

/* One of a page of platform_players_active. */
MUST_CHECK enum status players_view(struct platform_store *store,
                                    const struct listed_player *listed, struct player_view *player,
                                    struct error *error);

/* How a player is asked for: by `id`, by `customer_id` and `reference`, by `launch_id`, or by
 * `provider_id` and `subject`. The others are NULL. */
struct player_question {
    const char *id;
    const char *customer_id, *reference;
    const char *launch_id;
    const char *provider_id, *subject;
};

/* STATUS_NOT_FOUND: there is none, also of a demo launch. STATUS_EXISTS: the customer calls more
 * than one so (in several currencies), whose ids are in the text. */
MUST_CHECK enum status players_find(struct platform_store *store,
                                    const struct player_question *question,
                                    struct player_view *player, struct error *error);
