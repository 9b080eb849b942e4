#pragma once

#include "stores/platform_ledger.h"

/*
 * The cache of a handle of the SQLite ledger, as of the last commit that the handle knows of:
 * accounts of active players, the numbers of customers and players, players by number, and the
 * newest transactions. All of it is bounded: a new entry replaces another one.
 *
 * Players, numbers and transactions never change, so a cache lives as long as its connection.
 * Accounts change: the handle forgets them when another process has written, and SQLite compares
 * the stored account with the cached one when it is written.
 *
 * The cache owns the pointers that it returns, until the next call that adds. One thread at a time.
 */

struct cached_player {
    int64_t number; /* 0: there is none */
    int64_t customer_number;
    struct player_record record;
};

/* The transaction as an answer has it; a decline is without its place in the chain. */
struct cached_transaction {
    int64_t number; /* 0: there is none */
    int64_t customer_number;
    struct ledger_transaction transaction;
};

struct ledger_cache;

struct ledger_cache *ledger_cache_create(void);
void ledger_cache_destroy(struct ledger_cache **cache);
void ledger_cache_forget_accounts(struct ledger_cache *cache);

/* NULL or 0: it is not cached. */
struct ledger_stored *ledger_cache_account(struct ledger_cache *cache, const char *player_id);
void ledger_cache_put_account(struct ledger_cache *cache, const struct ledger_stored *account);
int64_t ledger_cache_number(struct ledger_cache *cache, const char *id);
void ledger_cache_put_number(struct ledger_cache *cache, const char *id, int64_t number);
const struct cached_player *ledger_cache_player(const struct ledger_cache *cache, int64_t number);
void ledger_cache_put_player(struct ledger_cache *cache, const struct cached_player *player);
const struct cached_transaction *ledger_cache_transaction(const struct ledger_cache *cache,
                                                          int64_t number);
void ledger_cache_put_transaction(struct ledger_cache *cache, int64_t number,
                                  int64_t customer_number,
                                  const struct ledger_transaction *transaction);
