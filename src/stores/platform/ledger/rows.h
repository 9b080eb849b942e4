#pragma once

#include "stores/platform/sql.h"
#include "stores/platform_ledger.h"

/*
 * Readers of the ledger's rows in both engines. A reader returns false for a malformed row, which
 * is an error and never skipped: it is money.
 */

#define SQL_HASH(hash_) SQL_BYTES((hash_), LEDGER_HASH_SIZE)

/* The columns are those of sql/statements/shared.sql, from `first` on. */
#define LEDGER_ACCOUNT_COLUMN_COUNT 9
bool ledger_read_player(const struct sql_row *row, int first, struct player_record *player);
MUST_CHECK bool ledger_read_account(const struct sql_row *row, int first,
                                    struct ledger_account *account);
/* The last three columns of an account, which change with every entry. */
MUST_CHECK bool ledger_read_balance(const struct sql_row *row, int first,
                                    struct ledger_account *account);

#define LEDGER_DECLINED_COLUMN_COUNT 2
MUST_CHECK bool ledger_read_declined(const struct sql_row *row, int first,
                                     struct ledger_account *account);

/* The first four columns of a transaction and the last one, its player's, are not read where
 * `player` is given. */
#define LEDGER_TRANSACTION_COLUMN_COUNT 21
#define LEDGER_OPERATION_COLUMN 8
MUST_CHECK bool ledger_read_transaction(const struct sql_row *row, int first,
                                        const struct player_record *player,
                                        struct ledger_transaction *transaction);

/* The player of a kept transaction, by its hint or by search; player_count: it was not asked
 * for. */
size_t ledger_player_of_kept(const struct ledger_batch *batch, size_t at);

/* Finds the clearing account of a player among those of the batch. True: it was not among them, and
 * is now, to be loaded. */
MUST_CHECK bool ledger_find_clearing(struct ledger_batch *batch,
                                     struct ledger_batch_player *player);

static inline bool ledger_read_null(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_TEXT).null;
}
bool ledger_read_string(const struct sql_row *row, int column, char *out, size_t room);
/* False and zeros where it is NULL or has another size. */
bool ledger_read_hash(const struct sql_row *row, int column, uint8_t hash[LEDGER_HASH_SIZE]);
