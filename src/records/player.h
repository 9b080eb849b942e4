#pragma once

#include "records/customer.h"

#define PLAYER_ID_SIZE 24        /* "ply_" and 16 base62 characters; NUL-terminated */
#define PLAYER_REFERENCE_SIZE 65 /* 1 to 64 of [A-Za-z0-9._:-] */
#define CURRENCY_SIZE 4          /* three capitals */
#define CURRENCY_EXPONENT_MAX 4

/* One of each customer, reference and currency, for ever: never deleted, and all that ever changes
 * is whether it is blocked. */
struct player_record {
    char id[PLAYER_ID_SIZE];
    char customer_id[CUSTOMER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE]; /* the customer's own alias */
    char currency[CURRENCY_SIZE];
    uint8_t currency_exponent; /* as frozen when the currency was first used in this store */
    int64_t created_ms;
    int64_t blocked_ms; /* since when nothing is bet for it; 0: it is not blocked */
};

/* Money is at stake: a malformed row is an error, not a player. */
extern const struct record_table player_table;

/* A new id. */
void player_id_generate(char id[PLAYER_ID_SIZE]);
