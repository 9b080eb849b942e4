#ifndef CROUPIER_STORES_PLATFORM_SQLITE_ROWS_H
#define CROUPIER_STORES_PLATFORM_SQLITE_ROWS_H

#include "stores/platform/sqlite/cache.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

/*
 * The rows of the ledger: what their columns mean, and the proof that one is what was written. A
 * row that is malformed is an error and never skipped: it is money.
 */

/* ---- columns --------------------------------------------------------------------------------- */

#define ACCOUNT_COLUMNS                                                                    \
    "player.id, player.customer_id, player.reference, player.currency, currency.exponent," \
    " player.created_ms, coalesce(ledger_account.balance_minor, 0),"                       \
    " coalesce(ledger_account.sequence, 0), coalesce(ledger_account.head, zeroblob(32))"
#define ACCOUNT_COLUMN_COUNT 9
#define ACCOUNT_JOINS                                   \
    " JOIN currency ON currency.code = player.currency" \
    " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"

/* What the account says of its declines: after the columns of the account, where it is asked
 * for. */
#define DECLINED_COLUMNS \
    ", coalesce(ledger_declined.declines, 0), coalesce(ledger_declined.head, zeroblob(32))"
#define DECLINED_COLUMN_COUNT 2
#define DECLINED_JOIN " LEFT JOIN ledger_declined ON ledger_declined.player_number = player.number"

#define TRANSACTION_COLUMNS_OF(customer_id, player_id, currency, exponent)                    \
    customer_id                                                                               \
        "," player_id ", ledger_transaction.transaction_id,"                                  \
        " coalesce(ledger_transaction.reference, ''), coalesce(ledger_transaction.game, '')," \
        " coalesce(ledger_transaction.round_id, '')," currency "," exponent ","               \
        " ledger_transaction.operation, ledger_transaction.outcome,"                          \
        " ledger_transaction.amount_minor, ledger_transaction.created_ms,"                    \
        " ledger_transaction.sequence, ledger_transaction.movement_minor,"                    \
        " ledger_transaction.balance_minor, ledger_transaction.hash,"                         \
        " coalesce(ledger_transaction.provider, ''), coalesce(ledger_transaction.launch, '')"
#define TRANSACTION_COLUMN_COUNT 18
/* With the player's by a join; */
#define TRANSACTION_COLUMNS                                                      \
    TRANSACTION_COLUMNS_OF("player.customer_id", "player.id", "player.currency", \
                           "currency.exponent")
/* or without, when they are known. */
#define TRANSACTION_COLUMNS_ALONE TRANSACTION_COLUMNS_OF("NULL", "NULL", "NULL", "NULL")

bool sqlite_read_hash(sqlite3_stmt *row, int column, uint8_t hash[LEDGER_HASH_SIZE]);
MUST_CHECK bool sqlite_read_account(sqlite3_stmt *row, int first, struct ledger_account *account);
MUST_CHECK bool sqlite_read_declined(sqlite3_stmt *row, int first, struct ledger_account *account);
/* TRANSACTION_COLUMNS; of TRANSACTION_COLUMNS_ALONE with `player`. */
MUST_CHECK bool sqlite_read_transaction(sqlite3_stmt *row, const struct player_record *player,
                                        struct ledger_transaction *transaction);

/* ---- rows by number -------------------------------------------------------------------------- */

struct ledger_row {
    int64_t number, customer_number, player_number;
    int64_t previous; /* as it is stored */
    struct ledger_transaction transaction;
    /* Where it was proved; also of a decline: that of the chain of declines. */
    uint8_t hash[LEDGER_HASH_SIZE];
};

#define LEDGER_ROW_COLUMNS                                           \
    TRANSACTION_COLUMNS_ALONE ", ledger_transaction.number,"         \
                              " ledger_transaction.customer_number," \
                              " ledger_transaction.player_number, ledger_transaction.previous"
/* From these columns, with its player from the cache; not proved. Other statements run meanwhile;
 * none of them is the one that the row is of. */
MUST_CHECK enum status sqlite_row_read(struct sqlite_store *store, sqlite3_stmt *statement,
                                       struct ledger_row *row, struct error *error);

/* A row, proved: it hashes to what is stored, with what it is chained to, and so is, word for word,
 * what was answered. STATUS_NOT_FOUND: there is none. STATUS_MALFORMED: it is damaged. */
MUST_CHECK enum status sqlite_row_load(struct sqlite_store *store, int64_t number,
                                       struct ledger_row *row, struct error *error);

/* The same of all rows from one number to another, none of which may be missing. The visitor
 * returns false to stop early, and must not use the store. */
typedef bool ledger_row_visitor(void *context, const struct ledger_row *row);
MUST_CHECK enum status sqlite_rows_visit(struct sqlite_store *store, int64_t first, int64_t last,
                                         ledger_row_visitor *visit, void *context,
                                         struct error *error);

/* ---- numbers --------------------------------------------------------------------------------- */

/* 0: there is none. */
MUST_CHECK enum status sqlite_customer_number(struct sqlite_store *store, const char *id,
                                              int64_t *number, struct error *error);
MUST_CHECK enum status sqlite_player_number(struct sqlite_store *store, const char *id,
                                            int64_t *number, struct error *error);

/* The player of a row, with its customer's number; the pointer is valid until the next call.
 * STATUS_MALFORMED: it is not there, or its customer is not. */
MUST_CHECK enum status sqlite_player(struct sqlite_store *store, int64_t number,
                                     const struct cached_player **player, struct error *error);

/* The cache of the handle's connection. */
struct ledger_cache *sqlite_cache(struct sqlite_store *store);

#endif
