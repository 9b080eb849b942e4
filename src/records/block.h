#pragma once

#include "records/player.h"

#define BLOCK_ID_SIZE (CUSTOMER_ID_SIZE + PLAYER_REFERENCE_SIZE)
#define BLOCK_REASON_SIZE 201

/* A block of one player, or of a customer's reference: of its players in every currency, also of
 * one that is opened later. Ended by hand, or by itself when its time is over. */
struct block_record {
    char id[BLOCK_ID_SIZE];         /* the player's, or "CUSTOMER:REFERENCE" */
    char player_id[PLAYER_ID_SIZE]; /* "": it is of the reference */
    char customer_id[CUSTOMER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE];
    int64_t blocked_ms;             /* since when; 0: it was taken away */
    int64_t until_ms;               /* in force before then; 0: without an end */
    char reason[BLOCK_REASON_SIZE]; /* of the block, or of taking it away; "": none was given */
};

extern const struct record_table block_table;

/* Fills in the id of a block of the record's customer and reference. */
void block_name(struct block_record *record);

static inline bool block_is_in_force(const struct block_record *record, int64_t now_ms)
{
    return record->blocked_ms != 0 && (record->until_ms == 0 || now_ms < record->until_ms);
}
