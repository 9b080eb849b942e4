#pragma once

/*
 * The contract of the platform store, written against the headers of the store (stores/platform*.h) alone and
 * run against every engine: `platform_contract ENGINE`. It stands in parts, one a file, which share the fixture and
 * the records here. An engine joins by one row in platform_places.h, which makes a URI of an empty
 * store of its own for each test.
 */
#include <pthread.h>
#include <unistd.h>

#include "platform_places.h"
#include "stores/platform_changes.h"
#include "stores/platform_games.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_sums.h"
#include "stores/platform_usage.h"
#include "stores/platform_verifications.h"
#include "tests.h"

struct fixture {
    struct place place;
    struct platform_store *store; /* migrated, and empty */
    struct error error;
};

/* The parts: each returns how many of its tests failed. */

/* What a listing or a look at the changes brought, in order. */
#define SEEN_MAX 16
struct seen {
    size_t customers, keys, addresses;
    size_t stop_after; /* of a listing; 0: never */
    bool customer_after_key;
    struct customer_record customer[SEEN_MAX];
    struct key_record key[SEEN_MAX];
    struct legacy_record legacy[SEEN_MAX];
};

struct platform_store *open_store(struct fixture *fixture, bool create);
int set_up(void **state);
int tear_down(void **state);
struct cidr cidr(const char *text);
struct address address(const char *text);
struct customer_record customer(const char *id, const char *name);
struct key_record key(const char *id, const char *customer_id, uint8_t digest);
struct legacy_record legacy(const char *text);
bool see_customer(void *context, const void *record);
bool see_key(void *context, const void *record);
bool see_legacy(void *context, const void *record);
uint64_t look(struct fixture *fixture, struct platform_store *store, uint64_t since,
              struct seen *seen);
struct player_record open_player(struct fixture *fixture, const char *customer_id,
                                 const char *reference, const char *currency, uint8_t exponent);
struct provider_record provider(const char *id);
struct game_record game(const char *id, const char *provider_id);
void add_two_customers(struct fixture *fixture);
