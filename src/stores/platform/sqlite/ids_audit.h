#ifndef CROUPIER_STORES_PLATFORM_SQLITE_IDS_AUDIT_H
#define CROUPIER_STORES_PLATFORM_SQLITE_IDS_AUDIT_H

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/ids.h"

/*
 * Whether each id of a customer is used once and rolled back once, and whether the files of the
 * index lead to what the rows make of it. It is given the keys of all rows and sorts them, through
 * a file beside the database that has no name when they are too many for memory. The index's files
 * are read as they are, whoever else has them open: nothing there is written or deleted. Rows that
 * none of them covers are compared with each other only.
 *
 * STATUS_MALFORMED: `error` names the first break. One thread, that of the handle.
 */

struct ids_audit;

MUST_CHECK enum status ids_audit_begin(struct ids_audit **audit, struct sqlite_store *store,
                                       struct error *error);
/* A key of a row. `settling`: under which the CREDITs of a DEBIT may be many. */
MUST_CHECK enum status ids_audit_add(struct ids_audit *audit, uint64_t key, int64_t number,
                                     bool settling, struct error *error);
/* When all have been added. */
MUST_CHECK enum status ids_audit_finish(struct ids_audit *audit, struct error *error);
void ids_audit_end(struct ids_audit **audit);

/* rows_audit.c: all rows of the ledger against what they refer to, and their ids as above. */
MUST_CHECK enum status sqlite_rows_audit(struct sqlite_store *store, struct error *error);

#endif
