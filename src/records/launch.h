#pragma once

#include "records/game.h"
#include "records/player.h"

#define LAUNCH_ID_SIZE 24      /* "lau_" and 16 base62 characters; NUL-terminated */
#define LAUNCH_SUBJECT_SIZE 23 /* 22 characters of base64url; NUL-terminated */

/* A launch, kept for ever: a provider's rights to a player's money rest on it, and support finds
 * players by it. A launch is never changed or deleted (docs/decisions/launches.md). */
struct launch_record {
    char id[LAUNCH_ID_SIZE]; /* the provider's `jti` or `launch_id` */
    char customer_id[CUSTOMER_ID_SIZE];
    char player_id[PLAYER_ID_SIZE]; /* "": in demo, where there is no player */
    char provider_id[PROVIDER_ID_SIZE];
    char subject[LAUNCH_SUBJECT_SIZE]; /* the provider's own id of the player */
    char game_id[GAME_ID_SIZE];
    int64_t created_ms;
};

/* A row that does not fit is an error: money depends on it. */
extern const struct record_table launch_table;
