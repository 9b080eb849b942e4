#ifndef CROUPIER_STORES_PLATFORM_POSTGRES_LEDGER_H
#define CROUPIER_STORES_PLATFORM_POSTGRES_LEDGER_H

#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/known.h"
#include "stores/platform/postgres/postgres.h"

/*
 * What the files of the PostgreSQL ledger share: ledger_load.c begins a batch, ledger.c writes and
 * commits it, ledger_read.c has all that only reads. A malformed row is an error and
 * never skipped: it is money.
 */

/* What is known of the batch between begin and commit, and of its players from batch to batch. */
struct postgres_ledger {
    struct known *known;
    uint32_t connects;   /* the connection that `known` is of (postgres_store.connects) */
    int64_t transaction; /* its number in the server */
    int64_t first_number;
    int64_t player_numbers[LEDGER_BATCH_MAX];   /* of the players */
    int64_t customer_numbers[LEDGER_BATCH_MAX]; /* of the clearing accounts */
    bool stored[LEDGER_BATCH_MAX];              /* of the clearing accounts: there is a row */
    bool lock_clearings;                        /* a limit was met: lock them first */
};

struct postgres_ledger *postgres_ledger_of(struct postgres_store *store);

/* Ends a transaction that failed. When another writer was in the way, or the connection was lost
 * before anything was to be committed, doing it again may well succeed: STATUS_CONFLICT. */
MUST_CHECK enum status postgres_ledger_give_up(struct postgres_store *store, enum status status,
                                               struct error *error);

/* A player's account: of the tables player, currency and (LEFT JOIN) ledger_account. */
#define LEDGER_ACCOUNT_COLUMNS                                                             \
    "player.id, player.customer_id, player.reference, player.currency, currency.exponent," \
    " player.created_ms, ledger_account.balance_minor, ledger_account.sequence,"           \
    " ledger_account.head"
#define LEDGER_ACCOUNT_COLUMN_COUNT 9
MUST_CHECK bool ledger_read_account(const struct postgres_row *row, int first,
                                    struct ledger_account *account);

/* The last three of them: what changes with every entry. */
MUST_CHECK bool ledger_read_balance(const struct postgres_row *row, int first,
                                    struct ledger_account *account);

/* What the account says of its declines, after the columns above where it is asked for: of the
 * table ledger_declined (LEFT JOIN). */
#define LEDGER_DECLINED_COLUMNS ", ledger_declined.declines, ledger_declined.head AS declines_head"
#define LEDGER_DECLINED_COLUMN_COUNT 2
MUST_CHECK bool ledger_read_declined(const struct postgres_row *row, int first,
                                     struct ledger_account *account);

/* A transaction: of the tables ledger_transaction, player, currency and provider (by the join). */
#define LEDGER_TRANSACTION_COLUMNS                                      \
    "player.customer_id, player.id, ledger_transaction.transaction_id," \
    " ledger_transaction.reference, ledger_transaction.game_id,"        \
    " ledger_transaction.round_id, player.currency, currency.exponent," \
    " ledger_transaction.operation, ledger_transaction.outcome,"        \
    " ledger_transaction.amount_minor, ledger_transaction.created_ms,"  \
    " ledger_transaction.sequence, ledger_transaction.movement_minor,"  \
    " ledger_transaction.balance_minor, ledger_transaction.hash,"       \
    " provider.id, ledger_transaction.launch_id"
#define LEDGER_TRANSACTION_COLUMN_COUNT 18
#define LEDGER_PROVIDER_JOIN \
    " LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number"
MUST_CHECK bool ledger_read_transaction(const struct postgres_row *row, int first,
                                        struct ledger_transaction *transaction);

/* All that is known of ids: $1 is an array of owners' numbers, $2 of the ids, $3 of 1 where
 * standing credits are to be counted and else 0. Rows for each that anything is known of;
 * ledger_read_fact fills one in, in facts that were asked for in this order and whose `id` was
 * zeroed. */
extern const char ledger_find_facts[];
MUST_CHECK bool ledger_read_fact(const struct postgres_row *row, struct ledger_fact *const *asked,
                                 size_t count);

/* Which of `count` things that were asked for a row is about, by its first column, from 1. */
MUST_CHECK bool ledger_read_ordinal(const struct postgres_row *row, size_t count, size_t *at);

#endif
