#pragma once

#include "records/ledger_entry.h"
#include "records/records.h"
#include "stores/platform.h"

/*
 * Players and their launches in the platform store (platform.h, whose rules on handles and threads
 * hold here too).
 */

/* ---- players --------------------------------------------------------------------------------- */

/*
 * The player of this customer, reference and currency: found, or made. There is one player for each
 * three, for ever, even if several callers ask at the same time; players are never deleted.
 * `exponent` counts only when the currency is used for the first time in this store.
 * STATUS_INVALID: not acceptable, or the player would be new and its currency is withdrawn;
 * STATUS_NOT_FOUND: no such customer.
 */
MUST_CHECK enum status platform_player_open(struct platform_store *store, const char *customer_id,
                                            const char *reference, const char *currency,
                                            uint8_t exponent, struct player_record *player,
                                            struct error *error);

/*
 * Stores a block as `next` has it. `before` is how it was read; one that was not there is zeros.
 * EXISTS: another writer has changed it since. NOT_FOUND: its player or customer is not there.
 *
 * Each batch of the ledger reads the blocks of its players under the lock that also orders the
 * batches of one player, in every process. So a batch that read them just before the block was
 * committed may still take stakes, at most one for a player, and none after it.
 */
MUST_CHECK enum status platform_block_put(struct platform_store *store,
                                          const struct block_record *next,
                                          const struct block_record *before, struct error *error);

/* The players that a customer calls by this reference, one for each currency, as created: at most
 * `most`, into `players`. There are fewer than PLAYERS_NAMED_MAX (records/currencies.txt). */
#define PLAYERS_NAMED_MAX 200
MUST_CHECK enum status platform_players_named(struct platform_store *store, const char *customer_id,
                                              const char *reference, struct player_record *players,
                                              size_t most, size_t *count, struct error *error);

/* Players, the last active first: those of the newest 2,000 operations, then the others, the newest
 * first. With `words` those whose id, launch or id at a provider is just that, then those whose
 * reference begins so, in capitals or not, in order of customer and reference. `customer_id` "": of
 * all customers. `cursor`: 0, or `next` of the page before, which is 0 at the end. `found`: how
 * many there are; UINT64_MAX: more than 10,000. The cost of a page does not depend on the number of
 * players; with `words` it depends on the number of those before the page. */
#define PLAYERS_PAGE_MAX 200
struct players_page {
    struct listed_player {
        struct ledger_account account; /* with its block */
        int64_t active_ms;             /* when its last entry was made; 0: it has none */
    } players[PLAYERS_PAGE_MAX];
    size_t count;
    uint64_t found, next;
};
MUST_CHECK enum status platform_players_active(struct platform_store *store,
                                               const char *customer_id, const char *words,
                                               uint64_t cursor, uint64_t limit,
                                               struct players_page *page, struct error *error);

/* Adds players as they are, id and time included, without their blocks, in one transaction: for
 * copying a store (croupier platform copy). EXISTS: one is there; INVALID: a record is not
 * acceptable; NOT_FOUND: no such customer. A currency that is there already keeps its exponent. */
MUST_CHECK enum status platform_player_put(struct platform_store *store,
                                           const struct player_record *records, size_t count,
                                           struct error *error);

/* ---- launches -------------------------------------------------------------------------------- */

/* Adds launches, all or none, in one transaction. NOT_FOUND: a customer, player, provider or game
 * is not there; EXISTS: an id is. */
MUST_CHECK enum status platform_launches_add(struct platform_store *store,
                                             const struct launch_record *records, size_t count,
                                             struct error *error);

/* The newest launches of a player, newest first: at most `most`, into `launches`. */
MUST_CHECK enum status platform_launches_newest(struct platform_store *store, const char *player_id,
                                                struct launch_record *launches, size_t most,
                                                size_t *count, struct error *error);

/*
 * The player that a provider means. A launch is stored before its provider gets it and never
 * changes, so a found one stays valid for ever, and one not found was not launched before the
 * question. So the ledger's thread may ask on the handle of its batches, before it begins one: once
 * a batch, one round trip. Demo launches count for nothing here.
 */
#define LAUNCH_LOOK_UPS_MAX 256U
struct launch_look_up {
    const char *provider_id, *subject; /* asked for: any names (is_outside_name); borrowed */
    const char *launch_id;             /* asked for, likewise; "": none */
    bool known;                        /* the provider has launched this player; then: */
    bool launched;                     /* and by that very launch; then: */
    char player_id[PLAYER_ID_SIZE];
    char game_id[GAME_ID_SIZE]; /* the launch's */
    int64_t launched_ms;
};
MUST_CHECK enum status platform_launches_find(struct platform_store *store,
                                              struct launch_look_up *look_ups, size_t count,
                                              struct error *error);
