#pragma once

#include "records/customer.h"

#define PLAYER_ID_SIZE 24        /* "ply_" and 16 base62 characters; NUL-terminated */
#define PLAYER_REFERENCE_SIZE 65 /* 1 to 64 of [A-Za-z0-9._:-] */
#define CURRENCY_SIZE 4          /* three capitals */
#define CURRENCY_EXPONENT_MAX 4

/* When the blocks of a player that are in force end, by the row `player` of a query: of the player
 * itself and of its reference (struct block_record). NULL: there is none. */
#define PLAYER_BLOCKED_UNTIL                                     \
    "SELECT max(coalesce(until_ms, 9223372036854775807))"        \
    " FROM player_block WHERE blocked_ms IS NOT NULL AND id IN " \
    "(player.id, player.customer_id || ':' || player.reference," \
    " player.customer_id || '/' || player.reference)"
#define PLAYER_BLOCKED_FOR_GOOD INT64_MAX

/* One of each customer, reference and currency, for ever: never deleted nor changed. */
struct player_record {
    char id[PLAYER_ID_SIZE];
    char customer_id[CUSTOMER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE]; /* the customer's own alias */
    char currency[CURRENCY_SIZE];
    uint8_t currency_exponent; /* as frozen when the currency was first used in this store */
    int64_t created_ms;
    bool sandbox;             /* where entries are read: its customer is a sandbox */
    int64_t blocked_until_ms; /* nothing is bet for it before then; 0: it is not blocked */
};

/* Money is at stake: a malformed row is an error, not a player. */
extern const struct record_table player_table;

/* Both the ledger and launches judge it by the server's clock, when they need it. */
static inline bool player_is_blocked(const struct player_record *player, int64_t now_ms)
{
    return now_ms < player->blocked_until_ms;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

#define BLOCK_ID_SIZE (CUSTOMER_ID_SIZE + PLAYER_REFERENCE_SIZE)
#define BLOCK_REASON_SIZE 201

/* A block of one player, or of a customer's reference: of its players in every currency, also of
 * one that is opened later. Ended by hand, or by itself when its time is over. */
struct block_record {
    /* The player's, or "CUSTOMER:REFERENCE"; or "CUSTOMER/REFERENCE", the customer's own block,
     * which the operator neither sets nor lifts. */
    char id[BLOCK_ID_SIZE];
    char player_id[PLAYER_ID_SIZE]; /* "": it is of the reference */
    char customer_id[CUSTOMER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE];
    int64_t blocked_ms;             /* since when; 0: it was taken away */
    int64_t until_ms;               /* in force before then; 0: without an end */
    char reason[BLOCK_REASON_SIZE]; /* of the block, or of taking it away; "": none was given */
};

extern const struct record_table block_table;

/* Writes the id of a block of a customer's reference, the customer's own or the operator's. It is
 * cut off where a text is longer than those of a record. */
void block_name(char id[BLOCK_ID_SIZE], const char *customer_id, const char *reference, bool own);
bool block_is_own(const struct block_record *record);

static inline bool block_is_in_force(const struct block_record *record, int64_t now_ms)
{
    return record->blocked_ms != 0 && (record->until_ms == 0 || now_ms < record->until_ms);
}
