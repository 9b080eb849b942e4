#pragma once

#include "stores/platform_ledger.h"

/*
 * The proof that the ledger is whole. From one snapshot, in bounded memory, beside a running
 * server, it proves:
 *
 *   - The store itself is sound.
 *   - Each player's sequence has no gap.
 *   - Each balance is the one before plus the movement, and never negative.
 *   - Each entry is what its operation says, and is chained to the one before.
 *   - Each account is the sum of its entries.
 *   - Each clearing account is the negative of its players' balances.
 *   - Each kept decline is chained as well.
 *   - Each id leads to its transaction and to no other.
 *   - Each player is as it was opened.
 */

struct audit_options {
    /* Called with done == 0 while the store checks itself, then every so many entries. done ==
     * total means that all entries were read, and only the search for rows without their
     * counterpart is left, which cannot be counted. For a recent audit `total` is 0. NULL: no
     * reports. */
    const struct progress_watch *watch;
    bool recent; /* only what a night's check wants: transactions from the day on that begins at
                  * `since_ms`, the accounts of their players, and clearing accounts. The audit
                  * trusts the entries before these, and does not look at declines, the store itself
                  * and rows without their counterpart */
    int64_t since_ms;
    struct platform_store *beside; /* another handle of the store, for the check of the store
                                    * itself, beside the rest and in its own snapshot; NULL: the
                                    * first handle does it */
};

/* Where the ledger is broken, if the break is in one player's rows: "" and 0 where not. */
struct audit_break {
    char player_id[PLAYER_ID_SIZE];
    uint64_t sequence; /* of an entry */
    uint64_t decline;  /* position of a kept decline */
};

struct audit_result {
    uint64_t entries;          /* entries proved */
    uint64_t players;          /* players with entries */
    bool compared;             /* the schema's own shape, with what the migrations make */
    const char *how;           /* how the store checked itself, in a few words; NULL: it did not */
    struct audit_break broken; /* if it is not whole: the counts then end at the break */
};

/* STATUS_OK: the ledger is whole. STATUS_MALFORMED: `error` names the first break, and the result's
 * `broken` its place. Any other status: the store failed. */
MUST_CHECK enum status wallet_audit(struct platform_store *store,
                                    const struct audit_options *options,
                                    struct audit_result *result, struct error *error);

/* The same, and stores the outcome for servers and for the commands that show it. If the outcome
 * cannot be stored, `unkept` says why, else it is "". The proof is valid either way. */
MUST_CHECK enum status wallet_verify(struct platform_store *store,
                                     const struct audit_options *options,
                                     struct audit_result *result, struct error *unkept,
                                     struct error *error);
