#pragma once

#include "base/digest.h"
#include "base/json_writer.h"
#include "stores/platform_entries.h"
#include "stores/platform_records.h"

/*
 * A tail of the ledger or of the audit trail: its rows in the order of their numbers, from a place
 * on, page by page. All rows come in the order of their numbers and each comes once, also while
 * several instances write (docs/decisions/tails.md). The number of a row is the place to go on
 * from, also for another process. The command line and the console use it.
 */

enum tail_of { TAIL_LEDGER, TAIL_AUDIT };

struct tail {
    enum tail_of of;
    const char *customer_id;   /* of the ledger: only this customer's entries; "": all */
    struct trail_search trail; /* of the audit trail: object, who, operators */
    /* One of the two: a row is a line of JSON, or an element of the array that is open. */
    struct buffer *lines;
    struct json_writer *array;

    uint64_t place; /* number of the last row that was read; set it to begin there */
    bool begun;
    uint64_t rows; /* written so far */
    /* Of both: `known` and `hash` are those of the row at the place. `more`: there may be more rows
     * at once. `whole`: all is read that was there when the tail began. */
    struct ledger_tail ledger;
    /* Of the audit trail, whose hashes are a chain from its first row on: `chained` is the hash of
     * row `chained_to`, and `chained_before` of the one before it. */
    uint64_t chained_to;
    uint8_t chained[DIGEST_SIZE], chained_before[DIGEST_SIZE];
};

/* Appends the next page. STATUS_MALFORMED: there is no row at the place, or it is not the one that
 * was read before. After any other failure the tail can go on. */
MUST_CHECK enum status tail_read(struct tail *tail, struct platform_store *store,
                                 struct error *error);
