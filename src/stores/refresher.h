#pragma once

#include "stores/platform.h"

/*
 * An immutable table made of rows of the platform store, and the thread that keeps it fresh.
 *
 * The thread asks the store for a revision every `refresh_ms`, and asks its owner for a new table
 * when the revision has moved. A look without trouble confirms the table as of the moment at which
 * the look began. A table that was not confirmed for more than a second decides nothing
 * (docs/interface.md, "Errors"). After trouble the thread opens the store again and reads
 * everything, because it may be another database.
 *
 * Each table is a snapshot with a generation number. A serving thread compares the number, one
 * atomic load, and only when it has moved takes hold of the new snapshot under a mutex. A retired
 * snapshot is destroyed by the refresher's thread after its last holder has released it. A thread
 * that is idle keeps an old one until its next request.
 */
struct refresher;

struct refresher_options {
    const char *name;                    /* of the thread */
    const char *failing;                 /* for the log: "policies cannot be refreshed" */
    const char *again;                   /* for the log, when it is over; or see `recovered` */
    struct platform_store_options store; /* opened by the thread, and as long as it takes */
    uint32_t refresh_ms;
    /* The rest is called on the refresher's thread. */
    enum status (*revision)(struct platform_store *store, uint64_t *revision, struct error *error);
    /* Makes the table at the store's revision, which it stores. `*revision` is the one that was
     * read before; with `all` it does not count. */
    enum status (*read)(void *context, struct platform_store *store, bool all, uint64_t *revision,
                        void **table, struct error *error);
    /* The table is there for the first time, or confirmed again after trouble: for the log. NULL:
     * the refresher logs `again` after trouble. */
    void (*recovered)(void *context, const void *table, bool first, uint64_t took_ms);
    void (*destroy)(void *table);
    void *context;
};

struct refresher *refresher_create(const struct refresher_options *options);
/* No table is held any more. Takes as long as a store call that is under way. */
void refresher_destroy(struct refresher **refresher);

/* Has there been a table that was not out of date on arrival? */
bool refresher_is_ready(const struct refresher *refresher);

int64_t refresher_age_ms(struct refresher *refresher); /* since it was confirmed; -1: never */
uint64_t refresher_errors(struct refresher *refresher);

/* ---- a thread's hold ------------------------------------------------------------------------- */

struct table_snapshot;
struct table_hold { /* zeroed: none */
    struct table_snapshot *snapshot;
    uint64_t generation; /* of the table that is held: 1, 2, 3, …; 0: none */
};

/* The newest table, held until the next call with this hold; NULL: there is none yet. */
const void *refresher_newest(struct refresher *refresher, struct table_hold *hold);
/* The same if it is confirmed; NULL otherwise, and the hold stays as it was. */
const void *refresher_confirmed(struct refresher *refresher, struct table_hold *hold,
                                uint64_t now_mono_ms);
void refresher_release(struct refresher *refresher, struct table_hold *hold);
