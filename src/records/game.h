#pragma once

#include "records/customer.h"
#include "records/provider.h"

#define GAME_MOVED_SIZE 1024
#define GAMES_MAX 10000U /* in a store; ready in memory, so bounded */

enum game_volatility { GAME_VOLATILITY_NONE, GAME_LOW, GAME_MEDIUM, GAME_HIGH };

struct game_record {
    char id[GAME_ID_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
    char name[GAME_NAME_SIZE];
    char category[GAME_WORD_SIZE];
    char features[GAME_LIST_SIZE];
    int32_t rtp_bps; /* 0 to 10000, or -1: not known */
    enum game_volatility volatility;
    char thumbnail_url[GAME_URL_SIZE]; /* "": none */
    bool demo;                         /* may be played without money */
    char currencies[GAME_LIST_SIZE];
    char languages[GAME_LIST_SIZE];
    char devices[GAME_LIST_SIZE];
    char blocked_countries[GAME_LIST_SIZE]; /* where it must not be offered; "": nowhere */
    bool keeps_countries; /* of an import: a stored game's list of countries stays as it is */
    bool enabled;
    bool usable;                 /* false: the stored row is not sound; hidden */
    int64_t since_ms;            /* when it came to this provider; GAME_SINCE_NOW in an import */
    char moved[GAME_MOVED_SIZE]; /* former providers: a JSON array of [until_ms, "id"] */
    int64_t updated_ms;
    uint64_t revision;
};
#define GAME_SINCE_NOW (-1)

/* The games that a customer may use. */
struct game_policy_record {
    char customer_id[CUSTOMER_ID_SIZE];
    bool every_game;
    struct text games; /* ids in order, a list as in game_rules.h; borrowed */
    uint64_t revision;
};

extern const struct record_table game_table;
extern const struct record_table game_policy_table; /* a malformed row allows nothing */

extern const struct enum_names game_volatilities; /* "low", "medium", "high"; NULL for none */
