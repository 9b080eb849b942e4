#ifndef CROUPIER_STORES_PLATFORM_GAMES_H
#define CROUPIER_STORES_PLATFORM_GAMES_H

#include "stores/platform.h"

/*
 * The platform store's providers, games, and lists of games that customers may use. The rules of
 * platform_store.h hold: calls block, one thread at a time, engines behind one interface.
 *
 * Revisions. Every change takes the next number of a counter of its own (platform_games_revision).
 * The whole is small (thousands of games), so whoever keeps a copy reads everything again when the
 * number has moved: platform_games_read, from one snapshot.
 *
 * Lists in a record are one text: items separated by LF, in the order given, "" for none. (An item
 * holds no control characters.)
 */

#define GAME_ID_SIZE 65 /* [a-z0-9][a-z0-9-]{0,63}; of a provider too */
#define PROVIDER_ID_SIZE GAME_ID_SIZE
#define GAME_NAME_SIZE 129 /* of a provider too: 1 to 128 bytes of UTF-8 */
#define GAME_WORD_SIZE 65  /* a category, and every item of a list: 1 to 64 bytes */
#define GAME_URL_SIZE 1025 /* http:// or https://, printable ASCII */
#define GAME_LIST_SIZE 1025
#define GAME_LIST_ITEMS_MAX 256U
#define PROVIDER_AUDIENCE_SIZE 257
#define PROVIDER_SEALED_MAX 540U /* bytes of a sealed secret */
#define GAMES_MAX 10000U         /* in a store; ready in memory, so bounded */

struct provider_record {
    char id[PROVIDER_ID_SIZE];
    char name[GAME_NAME_SIZE];
    char launch_url[GAME_URL_SIZE]; /* without a fragment: a token is added to its query */
    bool launch_call; /* launch_url is an endpoint that is called; else players are sent there */
    char return_url[GAME_URL_SIZE];        /* "": none */
    char audience[PROVIDER_AUDIENCE_SIZE]; /* `aud` of its tokens */
    uint8_t secret[PROVIDER_SEALED_MAX];   /* sealed (records/secrets.h) */
    size_t secret_size;
    bool enabled;
    bool usable; /* false: the stored row makes no sense (set on reading); its games are hidden */
    int64_t created_ms;
    uint64_t revision;
};

enum game_volatility { GAME_VOLATILITY_NONE, GAME_LOW, GAME_MEDIUM, GAME_HIGH };

struct game_record {
    char id[GAME_ID_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
    char name[GAME_NAME_SIZE];
    char category[GAME_WORD_SIZE];
    char features[GAME_LIST_SIZE];
    int32_t rtp_bps; /* 0 to 10000, or -1: not told */
    enum game_volatility volatility;
    char thumbnail_url[GAME_URL_SIZE]; /* "": none */
    bool demo;                         /* may be played without money */
    char currencies[GAME_LIST_SIZE];
    char languages[GAME_LIST_SIZE];
    char devices[GAME_LIST_SIZE];
    bool enabled;
    bool usable; /* false: the stored row makes no sense; hidden */
    int64_t updated_ms;
    uint64_t revision;
};

/* Which games a customer may use. */
struct game_policy_record {
    char customer_id[CUSTOMER_ID_SIZE];
    bool every_game;
    struct text games; /* ids in order, a list as above; borrowed */
    uint64_t revision;
};

/* "low", "medium", "high"; NULL for none. */
const char *game_volatility_name(enum game_volatility volatility);

/* ---- what is acceptable (pure) --------------------------------------------------------------- */

bool game_id_is_sound(struct text id);
bool game_currency_is_sound(struct text currency); /* three capitals */
bool game_word_is_sound(struct text word);         /* 1 to 64 bytes of plain UTF-8 */
bool url_is_sound(struct text url);      /* http(s)://…, printable ASCII, of any length */
bool game_url_is_sound(struct text url); /* http(s)://…, at most 1024 printable ASCII characters */
/* Nobody on the way can read or change what is asked there: https://, or http:// to 127.0.0.1,
 * [::1] or localhost; and no user name in it. Of a sound URL. */
bool game_url_is_guarded(struct text url);
MUST_CHECK enum status provider_record_check(const struct provider_record *record,
                                             struct error *error);
MUST_CHECK enum status game_record_check(const struct game_record *record, struct error *error);

/* Is the item in the list? */
bool game_list_has(struct text list, struct text item);

/* ---- calls ----------------------------------------------------------------------------------- */

/* EXISTS: the id is taken. */
MUST_CHECK enum status platform_provider_add(struct platform_store *store,
                                             const struct provider_record *record,
                                             struct error *error);
/* Replaces all but id and created_ms. NOT_FOUND; with a `revision` other than 0 only if the stored
 * row still has it, else EXISTS: somebody else was quicker, so read it again. */
MUST_CHECK enum status platform_provider_update(struct platform_store *store,
                                                const struct provider_record *record,
                                                struct error *error);
MUST_CHECK enum status platform_provider_get(struct platform_store *store, const char *id,
                                             struct provider_record *record, struct error *error);

/* How an import went; what is the same already is left alone, updated_ms included. */
struct games_put_result {
    size_t added, changed, unchanged;
};
/* Adds or replaces by id, in one transaction: all or none. `enabled` of a game that is there stays
 * as it is unless the same index of `set_enabled` is true. NOT_FOUND: a provider that is not there.
 * FULL: there would be more than GAMES_MAX. */
MUST_CHECK enum status platform_games_put(struct platform_store *store,
                                          const struct game_record *records,
                                          const bool *set_enabled, size_t count, int64_t now_ms,
                                          struct games_put_result *result, struct error *error);
MUST_CHECK enum status platform_game_get(struct platform_store *store, const char *id,
                                         struct game_record *record, struct error *error);
/* Takes effect, and a new updated_ms, only when it was otherwise. NOT_FOUND. */
MUST_CHECK enum status platform_game_enable(struct platform_store *store, const char *id,
                                            bool enabled, int64_t now_ms, struct error *error);

/* Replaces the customer's list. NOT_FOUND: no such customer, or a game that is not there
 * (named). */
MUST_CHECK enum status platform_game_policy_put(struct platform_store *store,
                                                const struct game_policy_record *record,
                                                struct error *error);

MUST_CHECK enum status platform_games_revision(struct platform_store *store, uint64_t *revision,
                                               struct error *error);

struct platform_games_visit {
    void (*provider)(void *context, const struct provider_record *record);
    void (*game)(void *context, const struct game_record *record);
    void (*policy)(void *context, const struct game_policy_record *record);
    void *context;
};

/* Everything, from one snapshot whose revision is then stored: providers by id, then games by id,
 * then customers' lists. A visitor may be NULL; none may call the store. */
MUST_CHECK enum status platform_games_read(struct platform_store *store,
                                           const struct platform_games_visit *visit,
                                           uint64_t *revision, struct error *error);

#endif
