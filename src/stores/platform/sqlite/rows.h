#pragma once

#include "stores/platform/ledger/rows.h"
#include "stores/platform/sqlite/cache.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

/*
 * The rows of the ledger by their numbers, and whether a row is as it was written. A malformed row
 * is an error and never skipped: it is money.
 */

/* ---- rows by number -------------------------------------------------------------------------- */

struct ledger_row {
    int64_t number, customer_number, player_number;
    int64_t previous; /* as it is stored */
    struct ledger_transaction transaction;
    /* Set when the row was verified. A decline has its hash in the chain of declines here. */
    uint8_t hash[LEDGER_HASH_SIZE];
};

/* A verified row: its fields and the hash before it give the stored hash, so it is, word for word,
 * the row that was answered. STATUS_NOT_FOUND: there is none. STATUS_MALFORMED: it is damaged. */
MUST_CHECK enum status sqlite_row_load(struct sqlite_store *store, int64_t number,
                                       struct ledger_row *row, struct error *error);

/* The same of all rows from one number to another, none of which may be missing; or, with `id`, of
 * those that have it or refer to it, and of the ROLLBACKs, one of which may undo such a row. The
 * visitor returns false to stop early, and must not use the store. */
typedef bool ledger_row_visitor(void *context, const struct ledger_row *row);
MUST_CHECK enum status sqlite_rows_visit(struct sqlite_store *store, int64_t first, int64_t last,
                                         const char *id, ledger_row_visitor *visit, void *context,
                                         struct error *error);

/* ---- numbers --------------------------------------------------------------------------------- */

/* 0: there is none. */
MUST_CHECK enum status sqlite_customer_number(struct sqlite_store *store, const char *id,
                                              int64_t *number, struct error *error);
MUST_CHECK enum status sqlite_player_number(struct sqlite_store *store, const char *id,
                                            int64_t *number, struct error *error);

/* The player of a row, for readers of rows (engine.h); valid until the next call. */
const struct player_record *sqlite_player_of(struct platform_store *store, int64_t number);

/* The cache of the handle's connection. */
struct ledger_cache *sqlite_cache(struct sqlite_store *store);
