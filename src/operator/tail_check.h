#pragma once

#include "records/ledger_entry.h"

/*
 * Checks lines of a tail of the ledger without the ledger. Numbers must rise. The entries of each
 * player must follow each other without a gap. Each balance must follow from the one before, and
 * each hash must fit its entry and the hash before it. `sandbox`, which no hash has, must be the
 * same in all entries of a customer. Where a player's first entries are not in the lines, the check
 * takes the first one that is there as it is.
 *
 * Lines of an export have no numbers, and a last line with the head.
 *
 * Memory: about 100 bytes for each player. Threads: one at a time.
 */

struct tail_check;

struct tail_check *tail_check_create(void);
void tail_check_destroy(struct tail_check **check);

/* The next line. STATUS_MALFORMED: `error` says what is wrong with it. */
MUST_CHECK enum status tail_check_line(struct tail_check *check, struct text line,
                                       struct error *error);

struct tail_checked {
    uint64_t entries, players;
    uint64_t begun_before;          /* players whose first entries are not in the lines */
    int64_t first, last;            /* numbers; 0: of an export */
    bool ended;                     /* by the last line of an export */
    uint8_t head[LEDGER_HASH_SIZE]; /* the SHA-256 of all entries' hashes, in this order */
};
/* The counts are of all lines. Once, at their end. */
void tail_check_end(struct tail_check *check, struct tail_checked *checked);
