#pragma once

#include "stores/platform/engine.h"
#include "stores/platform/ledger/rows.h"
#include "stores/platform/texts.h"

/* Reading the ledger by an engine's texts; for the files in stores/platform/ledger and the engines'
 * `recover`. */

/* Hands on the rows of a text, from one snapshot and in constant memory. `take` returns
 * LEDGER_ENOUGH to stop early, which is no failure. It must not use the store. */
#define LEDGER_ENOUGH STATUS_PENDING
typedef enum status ledger_row_taker(void *context, const struct sql_row *row, struct error *error);
static inline enum status ledger_more(bool wanted)
{
    return wanted ? STATUS_OK : LEDGER_ENOUGH;
}
MUST_CHECK enum status ledger_read(struct platform_store *store, const char *sql,
                                   struct sql_parameters *parameters, ledger_row_taker *take,
                                   void *context, struct error *error);

/* The same of a text that has few rows: the engine keeps no snapshot for it. */
MUST_CHECK enum status ledger_read_page(struct platform_store *store, const char *sql,
                                        struct sql_parameters *parameters, ledger_row_taker *take,
                                        void *context, struct error *error);

/* A transaction from a row of the engine's texts. */
MUST_CHECK bool ledger_read_row(struct platform_store *store, const struct sql_row *row,
                                struct ledger_transaction *transaction);

/* The newest entries against their chain and their accounts. STATUS_MALFORMED: they do not fit. */
MUST_CHECK enum status ledger_check_newest(struct platform_store *store, struct error *error);

/* "the ledger is broken: rows are without their counterpart: ROW: WHAT" */
enum status ledger_broken_row(struct error *error, struct text row, const char *what);

/* Runs an engine's checks. STATUS_MALFORMED: `error` names the first row that does not fit. */
MUST_CHECK enum status ledger_run_checks(struct platform_store *store, struct error *error);
