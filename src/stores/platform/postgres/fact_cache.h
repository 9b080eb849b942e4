#pragma once

#include "records/ledger_entry.h"

/*
 * Players, and owners of ids (customers and providers), that a connection's batches have loaded:
 * their numbers and the facts about them that never change. So a batch asks the server for accounts
 * and ids by number, and does not ask again for these facts. Facts that can change (balances above
 * all) are not here.
 *
 * It holds for one connection: another may lead to a database that knows less (a standby that took
 * over). It is bounded: when it is full, it is emptied, and later batches fill it again.
 */

#define FACT_CACHE_MAX 65536

struct cached_player {
    struct player_record record; /* first: its id is the key */
    int64_t number, customer_number;
    bool has_account; /* there is a row of ledger_account, which stays */
};

struct cached_owner {
    char id[LEDGER_OWNER_SIZE];
    int64_t number; /* as ledger_transaction.owner_number has it: of a provider, it is negative */
};

/* Items by their ids, a string with which each begins. Zeroed it is empty. */
struct fact_cache {
    void *tree; /* of the C library */
    size_t count;
};

/* Can `more` items be added? If not, fact_cache_empty makes room. */
bool fact_cache_has_room(const struct fact_cache *cache, size_t more);
void fact_cache_empty(struct fact_cache *cache);

/* NULL: not cached. */
void *fact_cache_find(const struct fact_cache *cache, const char *id);

/* Adds a copy of an item; does nothing if it was added before. The caller has made sure of room. */
void fact_cache_add(struct fact_cache *cache, const void *item, size_t size);
