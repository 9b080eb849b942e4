#ifndef CROUPIER_RECORDS_RECORDS_H
#define CROUPIER_RECORDS_RECORDS_H

#include "records/address_policy.h"
#include "records/customer.h"
#include "records/game.h"
#include "records/key.h"
#include "records/player.h"
#include "records/provider.h"

/*
 * All kinds of records, and whoever wants to see some of them: a function for each kind that is
 * wanted, NULL for the others. What it is given is valid during the call. It returns false to see
 * no more, which is not an error.
 */
typedef bool customer_visitor(void *context, const struct customer_record *record);
typedef bool key_visitor(void *context, const struct key_record *record);
typedef bool legacy_visitor(void *context, const struct legacy_record *record);
typedef bool player_visitor(void *context, const struct player_record *record);
typedef bool provider_visitor(void *context, const struct provider_record *record);
typedef bool game_visitor(void *context, const struct game_record *record);
typedef bool game_policy_visitor(void *context, const struct game_policy_record *record);

struct record_visitor {
    customer_visitor *customer;
    key_visitor *key;
    legacy_visitor *legacy;
    player_visitor *player;
    provider_visitor *provider;
    game_visitor *game;
    game_policy_visitor *policy;
    /* Instead of all these: one function for the kinds in `kinds` (bit N is kind N). */
    bool (*any)(void *context, const struct record_table *table, const void *record);
    unsigned kinds;
    void *context;
};

bool record_visitor_wants(const struct record_visitor *visitor, enum record_kind kind);

/* Hands on a record of a kind that is wanted. */
bool record_visit(const struct record_visitor *visitor, enum record_kind kind, const void *record);

#endif
