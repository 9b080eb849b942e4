#pragma once

#include "base/log.h"
#include "games/query.h"
#include "records/launch.h"
#include "sealing/secrets.h"

/*
 * The games that can be seen, as one immutable table in memory: built from the platform store by
 * the refresher (games/games.h), read by every serving thread without a lock.
 *
 * In it are the games that are enabled and whose provider is, in the order of their ids, each with
 * its JSON made once; the providers, and of those that are enabled the secrets in clear (wiped with
 * the table); and the customers that have a list of their own. A customer without a list sees every
 * game. Admission decides who may use the casino.
 */
struct games_table;

struct games_secret {
    char kid[PROVIDER_KID_SIZE]; /* "": it is not named */
    struct buffer bytes;
};

struct games_provider {
    struct provider_record record;
    struct games_secret secrets[PROVIDER_SECRETS_MAX]; /* the newest first, which signs */
    size_t secret_count; /* 0: it is disabled, or they cannot be read: nothing of it is launched */
};

struct games_game {
    char *id, *name, *category;
    char *features, *currencies, *languages, *devices; /* lists: records/game.h */
    char *blocked_countries;                           /* a list too */
    bool demo;
    const struct games_provider *provider;
    struct text json;
    size_t number; /* its place in the table */
};

/* ---- building: one thread -------------------------------------------------------------------- */

/* Both are borrowed until the last provider is added; `log` may be NULL. */
struct games_table *games_table_create(const struct secrets *secrets, struct log *log);
/* In this order: every provider, every game, every list; as platform_games_read reports them, to a
 * struct record_visitor whose context is the table. A provider whose secret was sealed under
 * another key goes to the log. */
bool games_table_add_provider(void *table, const void *provider_record);
bool games_table_add_game(void *table, const void *game_record);
bool games_table_add_policy(void *table, const void *game_policy_record);
void games_table_destroy(struct games_table **table);

/* ---- reading: any thread, while none is being built ------------------------------------------ */

/* The game of this id if this customer sees it, else NULL. A sandbox customer sees the games of
 * sandbox providers, which no other customer sees. */
const struct games_game *games_table_find(const struct games_table *table, const char *customer_id,
                                          bool sandbox, struct text id);

/* The provider of this id, enabled or not, else NULL; and a provider's game of this id, when both
 * are enabled: no customer's list is asked. */
const struct games_provider *games_table_provider(const struct games_table *table, const char *id);
const struct games_game *games_table_find_of_provider(const struct games_table *table,
                                                      const char *provider_id, struct text id);

/* Appends the page: {"games": […], "next_cursor": …}. False (400): the cursor is not of this
 * customer and query. */
MUST_CHECK bool games_table_page(const struct games_table *table, const char *customer_id,
                                 bool sandbox, const struct games_query *query,
                                 struct buffer *body);

/* The provider's own id for a player: the same for ever, another with each provider, from which the
 * player cannot be found. 22 characters. */
#define GAMES_SUBJECT_SIZE LAUNCH_SUBJECT_SIZE
#define GAMES_SUBJECT_PURPOSE "provider subject" /* of its key (secrets_derive) */
void games_subject(const uint8_t key[SECRETS_KEY_SIZE], const char *provider_id,
                   const char *player_id, char out[GAMES_SUBJECT_SIZE]);
/* Callers that find a player without a table use this key. They wipe the key after use. */
void games_table_subject_key(const struct games_table *table, uint8_t out[SECRETS_KEY_SIZE]);
