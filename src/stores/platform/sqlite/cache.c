/*
 * Tables of sets. A hash names the set of an entry. In a full set a new entry takes the place of
 * another, in turn. Players and transactions have numbers without gaps and need no hash: each has
 * one slot.
 *
 * A table is made with its first entry, so a handle that asks for little takes little.
 */
#include "stores/platform/sqlite/cache.h"

#include "base/hash.h"
#include "base/memory.h"

#define WAYS 8 /* in a set */
#define ACCOUNT_SETS 8192
#define NUMBER_SETS 2048
#define PLAYERS 16384
#define TRANSACTIONS 16384

/* Entries by an id, a string within them. */
struct sets {
    size_t count, size, id_at; /* number of sets; size of an entry, and where its id stands */
    uint32_t *hashes;          /* WAYS a set, 0: free; NULL: there is no entry yet */
    char *entries;
};

struct cached_number {
    char id[PLAYER_ID_SIZE];
    int64_t number;
};
_Static_assert(PLAYER_ID_SIZE >= CUSTOMER_ID_SIZE, "an id of either fits");

struct ledger_cache {
    uint64_t seed;
    size_t replaced; /* entries */
    struct sets accounts, numbers;
    struct cached_player *players;
    struct cached_transaction *transactions;
};

struct ledger_cache *ledger_cache_create(void)
{
    struct ledger_cache *cache = memory_alloc_zeroed(1, sizeof *cache);
    cache->seed = hash_random_seed();
    cache->accounts = (struct sets){.count = ACCOUNT_SETS,
                                    .size = sizeof(struct ledger_stored),
                                    .id_at = offsetof(struct ledger_stored, account.player.id)};
    cache->numbers = (struct sets){.count = NUMBER_SETS, .size = sizeof(struct cached_number)};
    return cache;
}

void ledger_cache_destroy(struct ledger_cache **cache)
{
    if (*cache == NULL)
        return;
    memory_free((*cache)->accounts.hashes);
    memory_free((*cache)->accounts.entries);
    memory_free((*cache)->numbers.hashes);
    memory_free((*cache)->numbers.entries);
    memory_free((*cache)->players);
    memory_free((*cache)->transactions);
    memory_free(*cache);
    *cache = NULL;
}

void ledger_cache_forget_accounts(struct ledger_cache *cache)
{
    if (cache->accounts.hashes != NULL)
        memset(cache->accounts.hashes, 0, ACCOUNT_SETS * WAYS * sizeof cache->accounts.hashes[0]);
}

/* ---- by id ----------------------------------------------------------------------------------- */

static uint32_t mark_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32) | 1;
}

static void *find(const struct ledger_cache *cache, const struct sets *sets, const char *id)
{
    uint64_t hash = hash_string(cache->seed, id);
    size_t at = hash % sets->count * WAYS;
    for (size_t end = at + WAYS; at < end && sets->hashes != NULL; at++) {
        char *entry = sets->entries + at * sets->size;
        if (sets->hashes[at] == mark_of(hash) && strcmp(entry + sets->id_at, id) == 0)
            return entry;
    }
    return NULL;
}

static void put(struct ledger_cache *cache, struct sets *sets, const void *entry)
{
    const char *id = (const char *)entry + sets->id_at;
    uint64_t hash = hash_string(cache->seed, id);
    size_t first = hash % sets->count * WAYS;
    size_t at = first;
    if (sets->hashes == NULL) {
        sets->hashes = memory_alloc_zeroed(sets->count * WAYS, sizeof sets->hashes[0]);
        sets->entries = memory_alloc_zeroed(sets->count * WAYS, sets->size);
    }
    const char *place = find(cache, sets, id);
    if (place != NULL)
        at = (size_t)(place - sets->entries) / sets->size;
    else
        while (at < first + WAYS && sets->hashes[at] != 0)
            at++;
    if (at == first + WAYS)
        at = first + cache->replaced++ % WAYS;
    memcpy(sets->entries + at * sets->size, entry, sets->size);
    sets->hashes[at] = mark_of(hash);
}

struct ledger_stored *ledger_cache_account(struct ledger_cache *cache, const char *player_id)
{
    return find(cache, &cache->accounts, player_id);
}

void ledger_cache_put_account(struct ledger_cache *cache, const struct ledger_stored *account)
{
    put(cache, &cache->accounts, account);
}

int64_t ledger_cache_number(struct ledger_cache *cache, const char *id)
{
    const struct cached_number *found = find(cache, &cache->numbers, id);
    return found != NULL ? found->number : 0;
}

void ledger_cache_put_number(struct ledger_cache *cache, const char *id, int64_t number)
{
    struct cached_number entry = {.number = number};
    if (text_copy_plain(text_of(id), entry.id, sizeof entry.id))
        put(cache, &cache->numbers, &entry);
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
