#ifndef CROUPIER_STORES_PLATFORM_POSTGRES_LEDGER_H
#define CROUPIER_STORES_PLATFORM_POSTGRES_LEDGER_H

#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/postgres.h"

/*
 * What the two files of the PostgreSQL ledger share: ledger.c has the batches,
 * ledger_read.c all that only reads. A row that makes no sense is an error and
 * never skipped: it is money.
 */

/* A player's account: of the tables player, currency and (LEFT JOIN) ledger_account. */
#define LEDGER_ACCOUNT_COLUMNS                                                             \
    "player.id, player.customer_id, player.reference, player.currency, currency.exponent," \
    " player.created_ms, ledger_account.balance_minor, ledger_account.sequence,"           \
    " ledger_account.head"
#define LEDGER_ACCOUNT_COLUMN_COUNT 9
MUST_CHECK bool ledger_read_account(const struct postgres_row *row, int first,
                                    struct ledger_account *account);

/* What the account says of its declines, after the columns above where it is asked for: of the
 * table ledger_declined (LEFT JOIN). */
#define LEDGER_DECLINED_COLUMNS ", ledger_declined.declines, ledger_declined.head AS declines_head"
#define LEDGER_DECLINED_COLUMN_COUNT 2
MUST_CHECK bool ledger_read_declined(const struct postgres_row *row, int first,
                                     struct ledger_account *account);

/* A transaction: of the tables ledger_transaction, player and currency. */
#define LEDGER_TRANSACTION_COLUMNS                                      \
    "player.customer_id, player.id, ledger_transaction.transaction_id," \
    " ledger_transaction.reference, ledger_transaction.game_id,"        \
    " ledger_transaction.round_id, player.currency, currency.exponent," \
    " ledger_transaction.operation, ledger_transaction.outcome,"        \
    " ledger_transaction.amount_minor, ledger_transaction.created_ms,"  \
    " ledger_transaction.sequence, ledger_transaction.movement_minor,"  \
    " ledger_transaction.balance_minor, ledger_transaction.hash"
#define LEDGER_TRANSACTION_COLUMN_COUNT 16
MUST_CHECK bool ledger_read_transaction(const struct postgres_row *row, int first,
                                        struct ledger_transaction *transaction);

/* All that is known of ids: $1 is an array of customers' ids, $2 of the ids, $3 of
 * 1 where standing credits are to be counted and else 0. A row for each that
 * anything is known of; ledger_read_fact says which (from 0) and fills in `id`, zeroed before. */
extern const char ledger_find_facts[];
MUST_CHECK bool ledger_read_fact(const struct postgres_row *row, size_t count, size_t *at,
                                 struct ledger_id *id);

#endif
