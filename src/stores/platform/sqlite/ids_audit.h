#ifndef CROUPIER_STORES_PLATFORM_SQLITE_IDS_AUDIT_H
#define CROUPIER_STORES_PLATFORM_SQLITE_IDS_AUDIT_H

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/ids.h"

/*
 * Checks that each id of a customer is used once and rolled back once, and that the files of the
 * index agree with the rows. It gets the keys of all rows and sorts them. If they are too many for
 * memory, it sorts through an unnamed file beside the database. It reads the index's files as they
 * are, even while other handles have them open, and writes and deletes none. Rows that no file
 * covers are compared only with each other.
 *
 * STATUS_MALFORMED: `error` names the first break. One thread, that of the handle.
 */

struct ids_audit;

MUST_CHECK enum status ids_audit_begin(struct ids_audit **audit, struct sqlite_store *store,
                                       struct error *error);
/* Adds a key of a row. `settling`: a DEBIT may have many CREDITs under it. */
MUST_CHECK enum status ids_audit_add(struct ids_audit *audit, uint64_t key, int64_t number,
                                     bool settling, struct error *error);
/* Call it when all keys have been added. */
MUST_CHECK enum status ids_audit_finish(struct ids_audit *audit, struct error *error);
void ids_audit_end(struct ids_audit **audit);

/* rows_audit.c: checks all rows of the ledger against the rows that they refer to, and their ids as
 * above. */
MUST_CHECK enum status sqlite_rows_audit(struct sqlite_store *store, struct error *error);

#endif
