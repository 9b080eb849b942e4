#ifndef CROUPIER_STORES_PLATFORM_LEDGER_ROWS_H
#define CROUPIER_STORES_PLATFORM_LEDGER_ROWS_H

#include "stores/platform/sql.h"
#include "stores/platform_ledger.h"

/*
 * The columns of the ledger's rows in the SQL of both engines, and their readers. A reader returns
 * false for a malformed row, which is an error and never skipped: it is money.
 */

/* Of the tables player, currency and ledger_account (LEFT JOIN). */
#define LEDGER_PLAYER_COLUMNS                                                              \
    "player.id, player.customer_id, player.reference, player.currency, currency.exponent," \
    " player.created_ms"
#define LEDGER_ACCOUNT_COLUMNS                                                       \
    LEDGER_PLAYER_COLUMNS ", ledger_account.balance_minor, ledger_account.sequence," \
                          " ledger_account.head"
#define LEDGER_ACCOUNT_COLUMN_COUNT 9
bool ledger_read_player(const struct sql_row *row, int first, struct player_record *player);
MUST_CHECK bool ledger_read_account(const struct sql_row *row, int first,
                                    struct ledger_account *account);
/* The last three columns, which change with every entry. */
MUST_CHECK bool ledger_read_balance(const struct sql_row *row, int first,
                                    struct ledger_account *account);

/* Of the table ledger_declined (LEFT JOIN). */
#define LEDGER_DECLINED_COLUMNS "ledger_declined.declines, ledger_declined.head AS declines_head"
#define LEDGER_DECLINED_COLUMN_COUNT 2
MUST_CHECK bool ledger_read_declined(const struct sql_row *row, int first,
                                     struct ledger_account *account);

/* The columns of a transaction: four of its player (not read where `player` is given), then those
 * of ledger_transaction. Three of these have their own expression in each engine. */
#define LEDGER_TRANSACTION_OF(whose, game, provider, launch)                         \
    whose ", ledger_transaction.transaction_id, ledger_transaction.reference, " game \
          ", ledger_transaction.round_id, ledger_transaction.operation,"             \
          " ledger_transaction.outcome, ledger_transaction.amount_minor,"            \
          " ledger_transaction.created_ms, ledger_transaction.sequence,"             \
          " ledger_transaction.movement_minor, ledger_transaction.balance_minor,"    \
          " ledger_transaction.hash, " provider ", " launch
#define LEDGER_WHOSE_JOINED "player.customer_id, player.id, player.currency, currency.exponent"
#define LEDGER_TRANSACTION_COLUMN_COUNT 18
#define LEDGER_OPERATION_COLUMN 8
MUST_CHECK bool ledger_read_transaction(const struct sql_row *row, int first,
                                        const struct player_record *player,
                                        struct ledger_transaction *transaction);

/* The player of a kept transaction, by its hint or by search; player_count: it was not asked for. */
size_t ledger_player_of_kept(const struct ledger_batch *batch, size_t at);

static inline int64_t ledger_read_integer(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_INTEGER).integer;
}
static inline bool ledger_read_null(const struct sql_row *row, int column)
{
    return row->value(row, column, COLUMN_TEXT).null;
}
bool ledger_read_string(const struct sql_row *row, int column, char *out, size_t room);
/* False and zeros where it is NULL or has another size. */
bool ledger_read_hash(const struct sql_row *row, int column, uint8_t hash[LEDGER_HASH_SIZE]);

#endif
