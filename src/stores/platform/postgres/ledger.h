#pragma once

#include "stores/platform/postgres/arrays.h"
#include "stores/platform/postgres/postgres.h"

/*
 * Shared by the files of the PostgreSQL ledger: ledger_load.c begins a batch, ledger.c writes and
 * commits it, and ledger_read.c reads balances and ids.
 */

/* Ends a transaction that failed. STATUS_CONFLICT: another writer conflicted, or the connection was
 * lost before a commit, so another attempt may succeed. */
MUST_CHECK enum status postgres_ledger_fail(struct postgres_store *store, enum status status,
                                            struct error *error);

/* A row of the texts `facts` and `fact` (texts.h), which have one or two for each id that
 * anything is known of: fills it in, in facts that were asked for in this order and whose `id` was
 * zeroed. */
MUST_CHECK bool ledger_read_fact(const struct sql_row *row, struct ledger_fact *const *asked,
                                 size_t count);

/* Returns which of the `count` things that were asked for a row is about, by its first column, from
 * 1. */
MUST_CHECK bool ledger_read_ordinal(const struct sql_row *row, size_t count, size_t *at);
