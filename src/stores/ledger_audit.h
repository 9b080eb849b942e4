#ifndef CROUPIER_STORES_LEDGER_AUDIT_H
#define CROUPIER_STORES_LEDGER_AUDIT_H

#include "stores/platform_ledger.h"

/*
 * The proof that the ledger is whole. The store is sound in itself; each player's sequence has no
 * gap, each balance is the one before plus the movement and never negative, each entry is what its
 * operation says and is chained to the one before, each account is the sum of its entries, and
 * every clearing account is the negative of what its players hold. Each kept decline is chained as
 * well, each id leads to its transaction and no other, and each player is what was opened. From one
 * snapshot, in bounded memory, beside a running server.
 */

/* Called while the store checks itself, with done == 0; every so many entries; and with done ==
 * total when all have been read and what cannot be counted is left: the search for rows without
 * their counterpart. Of what is recent, `total` is 0. May be NULL. */
typedef void audit_progress(void *context, uint64_t done, uint64_t total);

struct audit_options {
    audit_progress *progress;
    void *context;
    bool recent; /* only what a night's check wants: transactions from the day on that begins at
                  * `since_ms`, the accounts of their players, and clearing accounts. What they
                  * follow is taken as it is; declines, the store itself and rows without their
                  * counterpart are not looked at */
    int64_t since_ms;
    struct platform_store *beside; /* another handle of the store, which checks the store itself
                                    * meanwhile, in a snapshot of its own; NULL: by the first one */
};

/* Where the ledger is broken, as far as it is one player's: "" and 0 where not. */
struct audit_break {
    char player_id[PLAYER_ID_SIZE];
    uint64_t sequence; /* of an entry */
    uint64_t decline;  /* position of one that is kept */
};

struct audit_result {
    uint64_t entries; /* that were proved */
    uint64_t players; /* that have entries */
    const char *how;  /* the store's own soundness was found out, in a few words; NULL: not */
    struct audit_break broken; /* when it is not whole: the rest is as far as it came */
};

/* STATUS_OK: it is whole. STATUS_MALFORMED: `error` names the first break, and the result's
 * `broken` where that is. Else the store
 * failed. */
MUST_CHECK enum status wallet_audit(struct platform_store *store,
                                    const struct audit_options *options,
                                    struct audit_result *result, struct error *error);

/* The same, and how it ended is kept in the store, where servers and whoever asks them find it.
 * What is the matter when it could not be kept, is in `unkept`, else "": the proof stands all the
 * same. */
MUST_CHECK enum status wallet_verify(struct platform_store *store,
                                     const struct audit_options *options,
                                     struct audit_result *result, struct error *unkept,
                                     struct error *error);

#endif
