#pragma once

#include "base/progress.h"
#include "stores/odds.h"

/*
 * Copies every catalog and all odds from one odds store into another, of any engines, byte for
 * byte; then reads both again and compares. Interest is not copied: it lasts a minute. Catalogs
 * are published after their odds, so a reader of the copy finds no event without its odds.
 *
 * Feeds should not write during the copy: a change between reading and comparing is reported as a
 * difference. A few documents in memory at a time. Blocks; one thread.
 */

struct odds_counts {
    uint64_t catalogs;
    uint64_t events; /* with odds */
    uint64_t bytes;  /* of all documents */
};

/* `watch` may be NULL. STATUS_EXISTS: `to` is not empty, nothing was written; with `replace` its
 * content is withdrawn first. STATUS_MALFORMED: a document cannot be read, or the two differ at the
 * end (named). */
MUST_CHECK enum status odds_copy(struct odds_store *from, struct odds_store *to, bool replace,
                                 const struct progress_watch *watch, struct odds_counts *counts,
                                 struct error *error);
