#ifndef CROUPIER_STORES_PLATFORM_LEDGER_TEXTS_H
#define CROUPIER_STORES_PLATFORM_LEDGER_TEXTS_H

#include "stores/platform/ledger/rows.h"

/*
 * The SQL that reads the ledger. Statements that both engines understand are written here once; an
 * engine gives the parts in which its schema differs, and the statements of its own
 * (sqlite/ledger_texts.c, postgres/ledger_texts.c). reads.c, sums.c and audit.c use them.
 */

/* A statement that names the first row that does not fit, and finds none in a sound ledger. */
struct ledger_check_text {
    const char *what; /* is wrong with the row that `sql` names; NULL: its second column says it */
    const char *sql;
};

struct ledger_texts {
    /* NULL: a row of a transaction has its player's columns. Else it begins with the player's
     * number, whose record this finds in the engine's memory or by another statement; NULL: it is
     * not there. */
    const struct player_record *(*player_of)(struct platform_store *store, int64_t number);

    /* Rows of a transaction. */
    const char *transactions;
    const char *entered;             /* $1, $2: a time; $3: a customer or "" */
    const char *entered_of_provider; /* and $4 */
    /* Entries of a player ($1), with a sequence from $2 until before $3; and of a provider ($4). */
    const char *entries_of_player, *entries_of_player_and_provider;
    /* Entries of a customer ($1) or all (""), and of a provider ($2), in order of player. */
    const char *entries, *entries_of_provider;
    /* NULL where entries_of_player needs no chain. Else: the entries of a player where the chain
     * cannot be followed, with the parameters of that; and the account's last sequence ($1). */
    const char *cut_off, *last_sequence;

    /* A transaction, and the entry before it: sequence, balance and hash, NULL if there is none.
     * Then whether it is its player's first in the answer and the entry before it is not in the
     * answer. */
    const char *chained, *chained_since; /* $1: a time */
    const char *declines;                /* likewise: position, hash, the hash before */
    const char *accounts, *accounts_since;
    const char *newest;
    const char *sums;

    const struct ledger_check_text *checks;
    size_t check_count;
};

#define LEDGER_DAY "86400000" /* ms */

/* `columns`: LEDGER_TRANSACTION_OF. `inner`: the engine's word for a join in the order of the text.
 * `joins`: the joins that the columns need beside ledger_transaction. */
#define LEDGER_TEXT_TRANSACTIONS(columns, joins)               \
    "SELECT " columns " FROM ledger_transaction" joins         \
    " WHERE ledger_transaction.operation IS NOT NULL ORDER BY" \
    " ledger_transaction.number"

#define LEDGER_TEXT_DECLINES(columns, inner, joins)                                   \
    "SELECT " columns ", ledger_decline.position, ledger_decline.hash, before.hash"   \
    " FROM ledger_decline" inner "ledger_transaction"                                 \
    " ON ledger_transaction.number = ledger_decline.transaction_number"               \
    " AND ledger_transaction.operation IS NOT NULL" joins                             \
    " LEFT JOIN ledger_decline AS before ON before.player_number ="                   \
    " ledger_decline.player_number AND before.position = ledger_decline.position - 1" \
    " ORDER BY ledger_decline.player_number, ledger_decline.position"

/* An account, its count and head of declines, its last entry and its last decline. `last`: how an
 * account names its last entry. */
#define LEDGER_TEXT_ACCOUNTS(last)                                                            \
    "SELECT " LEDGER_ACCOUNT_COLUMNS ", " LEDGER_DECLINED_COLUMNS ", last.sequence,"          \
    " last.balance_minor, last.hash, (SELECT max(position) FROM ledger_decline"               \
    "  WHERE ledger_decline.player_number = player.number), last_decline.hash"                \
    " FROM player JOIN currency ON currency.code = player.currency"                           \
    " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"               \
    " LEFT JOIN ledger_transaction AS last ON " last                                          \
    " LEFT JOIN ledger_declined ON ledger_declined.player_number = player.number"             \
    " LEFT JOIN ledger_decline AS last_decline ON last_decline.player_number = player.number" \
    " AND last_decline.position = ledger_declined.declines"

/* Checks that read the same in both engines. */
#define LEDGER_CHECKS_SHARED                                                                     \
    {"it was opened and is not there",                                                           \
     "SELECT 'player ' || opened.id FROM player_opened AS opened WHERE NOT EXISTS"               \
     " (SELECT 1 FROM player WHERE player.number = opened.player_number) LIMIT 1"},              \
        {"it is chained as a decline and is none",                                               \
         "SELECT 'transaction number ' || chained.transaction_number FROM ledger_decline AS"     \
         " chained WHERE NOT EXISTS (SELECT 1 FROM ledger_transaction AS t"                      \
         "  WHERE t.number = chained.transaction_number AND t.player_number ="                   \
         "  chained.player_number AND t.sequence IS NULL AND t.operation IS NOT NULL) LIMIT 1"}, \
    {                                                                                            \
        "its declines have no chain",                                                            \
            "SELECT 'player number ' || declined.player_number FROM ledger_declined AS declined" \
            " WHERE NOT EXISTS (SELECT 1 FROM ledger_decline AS last"                            \
            "  WHERE last.player_number = declined.player_number"                                \
            "  AND last.position = declined.declines) LIMIT 1"                                   \
    }

/*
 * Sums of entries: by customer and currency and, where $5, $6 and $7 are 1, by day, by provider and
 * game, and by round. Of the time from $1 until before $2, of the customer $3 or all (""), and of
 * the provider $4 or all. `order` is the engine's word for the order of bytes.
 */
#define LEDGER_SUM(transfer, condition, value)                                               \
    ", CAST(sum(CASE WHEN transfer = " transfer " AND operation = " condition " THEN " value \
    " ELSE 0 END) AS bigint)"
#define LEDGER_SUMS(transfer)                                       \
    LEDGER_SUM(transfer, "'DEBIT'", "1")                            \
    LEDGER_SUM(transfer, "'CREDIT'", "1")                           \
    LEDGER_SUM(transfer, "'ROLLBACK'", "1")                         \
    LEDGER_SUM(transfer, "'DEBIT'", "-movement")                    \
    LEDGER_SUM(transfer, "'CREDIT'", "movement")                    \
    LEDGER_SUM(transfer, "'ROLLBACK' AND movement > 0", "movement") \
    LEDGER_SUM(transfer, "'ROLLBACK' AND movement < 0", "-movement")
#define LEDGER_SUM_KEY(wanted, value, order, name) \
    " CASE WHEN " wanted " = 1 THEN " value " ELSE '' END" order " AS " name ","
#define LEDGER_SUM_KEYS(game, round, provider, order)                                            \
    " player.customer_id" order " AS customer_id, player.currency" order " AS currency,"         \
    " currency.exponent AS exponent,"                                                            \
    " CASE WHEN $5 = 1 THEN ledger_transaction.created_ms / " LEDGER_DAY                         \
    " ELSE 0 END AS day," LEDGER_SUM_KEY("$6", provider, order, "provider")                      \
        LEDGER_SUM_KEY("$6", game, order, "game")                                                \
            LEDGER_SUM_KEY("$7", round, order, "round") " CASE WHEN " provider " = '' AND " game \
                                                        " = '' AND " round                       \
                                                        " = '' THEN 1 ELSE 0 END"                \
                                                        " AS transfer,"
#define LEDGER_TEXT_SUMS(from, condition, keys, provider)                                          \
    "SELECT customer_id, currency, exponent, day, provider, game, round" LEDGER_SUMS("0")          \
        LEDGER_SUMS(                                                                               \
            "1") " FROM (SELECT" keys " ledger_transaction.operation AS operation,"                \
                 " ledger_transaction.movement_minor AS movement FROM " from " WHERE " condition   \
                 " AND ledger_transaction.sequence IS NOT NULL"                                    \
                 " AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2" \
                 " AND ($3 = '' OR player.customer_id = $3) AND ($4 = '' OR " provider             \
                 " = $4)) AS entry"                                                                \
                 " GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 4, 5, 6, 7"

extern const struct ledger_texts sqlite_ledger_texts, postgres_ledger_texts;

#endif
