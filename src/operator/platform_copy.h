#pragma once

#include "stores/platform.h"

/*
 * Moves everything in one platform store into another, of any engines: customers, keys, tokens,
 * legacy addresses, providers (their secrets stay sealed with the same key file), games, lists of
 * games, players, launches, and the whole ledger, declines included, entry by entry with its hash;
 * and customers' usage.
 *
 * Neither store may be written during the copy. Keys and addresses come last, so that a copy that
 * broke off half-way admits no caller. The source is read once, in one snapshot, and its ledger's
 * chain is checked on the way. Then the copy is read back and must have the same fingerprints, its
 * ledger is audited (stores/ledger_audit.h), and the source's revisions and numbers of rows must be
 * those of the snapshot.
 * Not copied: revisions (the copy counts its own) and addresses that were removed.
 *
 * In constant memory, but for the games. Blocks. One thread.
 */

struct platform_counts {
    uint64_t records[RECORD_KIND_COUNT]; /* by kind */
    uint64_t transactions;               /* all that the ledger keeps */
    uint64_t entries;                    /* those of them that are entries */
};

/*
 * `to` has been migrated. STATUS_EXISTS: `to` is not empty, nothing was written. STATUS_MALFORMED:
 * `from` holds what cannot be read, or the two differ at the end (named; the source was written
 * to). Else the store failed. `watch` may be NULL. After any failure but STATUS_EXISTS, `to` is to
 * be thrown away.
 */
MUST_CHECK enum status platform_copy(struct platform_store *from, struct platform_store *to,
                                     const struct progress_watch *watch,
                                     struct platform_counts *counts, struct error *error);
