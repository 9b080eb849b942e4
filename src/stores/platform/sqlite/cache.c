/*
 * Tables of sets: a hash names the set, and within a set a new entry replaces the one that was used
 * longest ago. So entries in use stay as long as they fit, for any hashes. Players and transactions
 * have numbers without gaps and need no hash: each has one slot.
 *
 * A table is made with its first entry, so a handle that asks for little takes little.
 */
#include "stores/platform/sqlite/cache.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define WAYS 8 /* in a set */
#define ACCOUNT_SETS 8192
#define NUMBER_SETS 2048
#define PLAYERS 16384
#define TRANSACTIONS 16384

struct use {
    uint32_t hash, used; /* `used`: when, by the cache's clock */
};

struct cached_number {
    char id[PLAYER_ID_SIZE]; /* "": there is none */
    int64_t number;
};
_Static_assert(PLAYER_ID_SIZE >= CUSTOMER_ID_SIZE, "an id of either fits");

struct ledger_cache {
    uint64_t seed;
    uint32_t clock;
    struct use (*account_uses)[WAYS];
    struct ledger_stored (*accounts)[WAYS];
    struct use (*number_uses)[WAYS];
    struct cached_number (*numbers)[WAYS];
    struct cached_player *players;
    struct cached_transaction *transactions;
};

struct ledger_cache *ledger_cache_create(void)
{
    struct ledger_cache *cache = memory_alloc_zeroed(1, sizeof *cache);
    cache->seed = hash_random_seed();
    return cache;
}

void ledger_cache_destroy(struct ledger_cache **cache)
{
    if (*cache == NULL)
        return;
    memory_free((*cache)->account_uses);
    memory_free((*cache)->accounts);
    memory_free((*cache)->number_uses);
    memory_free((*cache)->numbers);
    memory_free((*cache)->players);
    memory_free((*cache)->transactions);
    memory_free(*cache);
    *cache = NULL;
}

void ledger_cache_forget_accounts(struct ledger_cache *cache)
{
    if (cache->account_uses != NULL)
        memset(cache->account_uses, 0, ACCOUNT_SETS * sizeof cache->account_uses[0]);
}

/* The time of a use. After it has gone round, what seems newest is merely kept for longer. */
static uint32_t tick(struct ledger_cache *cache)
{
    cache->clock++;
    if (cache->clock == 0) /* which says that a slot is free */
        cache->clock = 1;
    return cache->clock;
}

/* The slot that makes room. */
static size_t oldest(const struct use uses[WAYS])
{
    size_t found = 0;
    for (size_t way = 1; way < WAYS; way++)
        if (uses[way].used < uses[found].used)
            found = way;
    return found;
}

/* ---- accounts -------------------------------------------------------------------------------- */

struct ledger_stored *ledger_cache_account(struct ledger_cache *cache, const char *player_id)
{
    uint64_t hash = hash_string(cache->seed, player_id);
    size_t set = hash % ACCOUNT_SETS;
    for (size_t way = 0; way < WAYS && cache->accounts != NULL; way++) {
        struct use *use = &cache->account_uses[set][way];
        struct ledger_stored *account = &cache->accounts[set][way];
        if (use->used != 0 && use->hash == (uint32_t)(hash >> 32) &&
            strcmp(account->account.player.id, player_id) == 0) {
            use->used = tick(cache);
            return account;
        }
    }
    return NULL;
}

void ledger_cache_put_account(struct ledger_cache *cache, const struct ledger_stored *account)
{
    uint64_t hash = hash_string(cache->seed, account->account.player.id);
    size_t set = hash % ACCOUNT_SETS;
    if (cache->accounts == NULL) {
        cache->account_uses = memory_alloc_zeroed(ACCOUNT_SETS, sizeof cache->account_uses[0]);
        cache->accounts = memory_alloc_zeroed(ACCOUNT_SETS, sizeof cache->accounts[0]);
    }
    struct ledger_stored *there = ledger_cache_account(cache, account->account.player.id);
    size_t way =
        there != NULL ? (size_t)(there - cache->accounts[set]) : oldest(cache->account_uses[set]);
    cache->accounts[set][way] = *account;
    cache->account_uses[set][way] = (struct use){(uint32_t)(hash >> 32), tick(cache)};
}

/* ---- numbers --------------------------------------------------------------------------------- */

int64_t ledger_cache_number(struct ledger_cache *cache, const char *id)
{
    uint64_t hash = hash_string(cache->seed, id);
    size_t set = hash % NUMBER_SETS;
    for (size_t way = 0; way < WAYS && cache->numbers != NULL; way++) {
        struct use *use = &cache->number_uses[set][way];
        if (use->used != 0 && use->hash == (uint32_t)(hash >> 32) &&
            strcmp(cache->numbers[set][way].id, id) == 0) {
            use->used = tick(cache);
            return cache->numbers[set][way].number;
        }
    }
    return 0;
}

void ledger_cache_put_number(struct ledger_cache *cache, const char *id, int64_t number)
{
    uint64_t hash = hash_string(cache->seed, id);
    size_t set = hash % NUMBER_SETS;
    size_t size = strlen(id) + 1;
    if (size > sizeof cache->numbers[0][0].id || ledger_cache_number(cache, id) != 0)
        return;
    if (cache->numbers == NULL) {
        cache->number_uses = memory_alloc_zeroed(NUMBER_SETS, sizeof cache->number_uses[0]);
        cache->numbers = memory_alloc_zeroed(NUMBER_SETS, sizeof cache->numbers[0]);
    }
    size_t way = oldest(cache->number_uses[set]);
    memcpy(cache->numbers[set][way].id, id, size);
    cache->numbers[set][way].number = number;
    cache->number_uses[set][way] = (struct use){(uint32_t)(hash >> 32), tick(cache)};
}

/* ---- by number ------------------------------------------------------------------------------- */

const struct cached_player *ledger_cache_player(const struct ledger_cache *cache, int64_t number)
{
    if (cache->players == NULL)
        return NULL;
    const struct cached_player *player = &cache->players[(uint64_t)number % PLAYERS];
    return player->number == number && number != 0 ? player : NULL;
}

void ledger_cache_put_player(struct ledger_cache *cache, const struct cached_player *player)
{
    if (cache->players == NULL)
        cache->players = memory_alloc_zeroed(PLAYERS, sizeof cache->players[0]);
    cache->players[(uint64_t)player->number % PLAYERS] = *player;
}

const struct cached_transaction *ledger_cache_transaction(const struct ledger_cache *cache,
                                                          int64_t number)
{
    if (cache->transactions == NULL)
        return NULL;
    const struct cached_transaction *cached = &cache->transactions[(uint64_t)number % TRANSACTIONS];
    return cached->number == number && number != 0 ? cached : NULL;
}

void ledger_cache_put_transaction(struct ledger_cache *cache, int64_t number,
                                  int64_t customer_number,
                                  const struct ledger_transaction *transaction)
{
    if (cache->transactions == NULL)
        cache->transactions = memory_alloc_zeroed(TRANSACTIONS, sizeof cache->transactions[0]);
    struct cached_transaction *cached = &cache->transactions[(uint64_t)number % TRANSACTIONS];
    cached->number = number;
    cached->customer_number = customer_number;
    cached->transaction = *transaction;
    if (!ledger_is_entry(transaction)) {
        cached->transaction.decline = 0;
        memset(cached->transaction.hash, 0, sizeof cached->transaction.hash);
    }
}
