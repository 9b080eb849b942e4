/*
 * The SQL of the ledger's readers (ledger/texts.h) in SQLite, where no index leads from a player to
 * its entries: an entry names the one before it, and an index holds the first of every 256.
 */
#include "stores/platform/ledger/texts.h"

#include "stores/platform/sqlite/rows.h"

#define JOINS                                                                \
    " CROSS JOIN player ON player.number = ledger_transaction.player_number" \
    " CROSS JOIN currency ON currency.code = player.currency"
#define COLUMNS                                                                     \
    LEDGER_TRANSACTION_OF("ledger_transaction.player_number, NULL, NULL, NULL",     \
                          "ledger_transaction.game", "ledger_transaction.provider", \
                          "ledger_transaction.launch")
#define ROWS_OF(numbers)                              \
    "SELECT " COLUMNS " FROM (" numbers ") AS wanted" \
    " CROSS JOIN ledger_transaction ON ledger_transaction.number = wanted.number"

/* The reference of an entry that does not name its own game and round: a CREDIT leads to its DEBIT,
 * a ROLLBACK to its target, and to the DEBIT of that. */
#define REFERRED(from)                                                                           \
    "CASE WHEN " from ".reference IS NOT NULL AND (ledger_transaction.game IS NULL"              \
    " OR ledger_transaction.round_id IS NULL) THEN coalesce(" from ".settles, ledger_id_number(" \
    "coalesce(ledger_transaction.provider, player.customer_id), " from ".reference)) END"
#define ORIGIN                                                              \
    JOINS " LEFT JOIN ledger_transaction AS one ON one.number = " REFERRED( \
        "ledger_transaction") " LEFT JOIN ledger_transaction AS two"        \
                              " ON two.number = " REFERRED(                 \
                                  "one") " LEFT JOIN game ON game.id = "    \
                                         "coalesce(ledger_transaction.game, one.game, two.game)"
#define GAME "coalesce(ledger_transaction.game, one.game, two.game, '')"
#define ROUND "coalesce(ledger_transaction.round_id, one.round_id, two.round_id, '')"
#define PROVIDER "coalesce(ledger_transaction.provider, game.provider_id, '')"

/* The rows of the days that a time touches. */
#define OF_DAYS                                                                          \
    "ledger_day AS span CROSS JOIN ledger_transaction"                                   \
    " ON ledger_transaction.number >= span.first_number AND ledger_transaction.number <" \
    " coalesce((SELECT min(first_number) FROM ledger_day AS next"                        \
    "  WHERE next.first_number > span.first_number), 9223372036854775807)"
#define DAYS "span.day BETWEEN $1 / " LEDGER_DAY " AND ($2 - 1) / " LEDGER_DAY

/* Only numbers are sorted, and not rows. */
#define ENTERED(origin, condition)                                                            \
    ROWS_OF("SELECT ledger_transaction.number FROM " OF_DAYS origin " WHERE " DAYS            \
            " AND ledger_transaction.sequence IS NOT NULL"                                    \
            " AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2" \
            " AND ($3 = '' OR player.customer_id = $3)" condition                             \
            " ORDER BY ledger_transaction.created_ms, ledger_transaction.number LIMIT -1")

/* From the last entry of each block of 256 that is wanted backwards to its first. */
#define OF_PLAYER                                                                            \
    "WITH RECURSIVE whose (number, last_number, sequence) AS ("                              \
    " SELECT player.number, ledger_account.last_number, ledger_account.sequence FROM player" \
    " CROSS JOIN ledger_account ON ledger_account.player_number = player.number"             \
    " WHERE player.id = $1),"                                                                \
    " chain (number, previous, sequence) AS ("                                               \
    " SELECT entry.number, entry.previous, entry.sequence FROM whose"                        \
    " CROSS JOIN ledger_transaction AS entry ON entry.number = whose.last_number"            \
    "  AND entry.player_number = whose.number AND entry.sequence = whose.sequence"           \
    "  AND whose.sequence >= $2 AND (whose.sequence - 1) / 256 <= ($3 - 2) / 256"            \
    " UNION ALL"                                                                             \
    " SELECT entry.number, entry.previous, entry.sequence FROM whose"                        \
    " CROSS JOIN ledger_transaction AS next ON next.player_number = whose.number"            \
    "  AND next.sequence > $2 AND next.sequence <= $3 + 255 AND next.sequence > 1"           \
    "  AND next.sequence <= whose.sequence AND next.sequence % 256 = 1"                      \
    " CROSS JOIN ledger_transaction AS entry ON entry.number = next.previous"                \
    "  AND entry.player_number = whose.number AND entry.sequence = next.sequence - 1"        \
    " UNION ALL"                                                                             \
    " SELECT entry.number, entry.previous, entry.sequence FROM whose CROSS JOIN chain"       \
    " CROSS JOIN ledger_transaction AS entry ON entry.number = chain.previous"               \
    "  AND entry.player_number = whose.number AND entry.sequence = chain.sequence - 1"       \
    " WHERE chain.sequence % 256 <> 1) "
#define CHAIN                                                                           \
    "SELECT chain.number FROM chain WHERE chain.sequence >= $2 AND chain.sequence < $3" \
    " ORDER BY chain.sequence LIMIT -1"

#define ENTRIES(origin, condition)                                            \
    ROWS_OF("SELECT ledger_transaction.number FROM ledger_transaction" origin \
            " WHERE ledger_transaction.sequence IS NOT NULL"                  \
            " AND ($1 = '' OR player.customer_id = $1)" condition             \
            " ORDER BY ledger_transaction.player_number, ledger_transaction.sequence LIMIT -1")

#define BEFORE                                                                               \
    " LEFT JOIN ledger_transaction AS before ON before.number = ledger_transaction.previous" \
    " AND before.player_number = ledger_transaction.player_number"
#define SINCE                                                                  \
    "(SELECT coalesce(min(first_number), 9223372036854775807) FROM ledger_day" \
    " WHERE day >= $1 / " LEDGER_DAY ")"
#define LAST "last.number = ledger_account.last_number AND last.player_number = player.number"

static const struct ledger_check_text checks[] = {
    {"it is not what was opened",
     "SELECT 'player ' || player.id FROM player"
     " LEFT JOIN player_opened AS opened ON opened.player_number = player.number"
     " LEFT JOIN currency ON currency.code = player.currency"
     " WHERE opened.id IS NOT player.id OR opened.customer_id IS NOT player.customer_id"
     " OR opened.reference IS NOT player.reference OR opened.currency IS NOT player.currency"
     " OR opened.exponent IS NOT currency.exponent OR opened.created_ms IS NOT player.created_ms"
     " LIMIT 1"},
    LEDGER_CHECKS_SHARED,
    {"there is no such provider",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.provider IS NOT NULL"
     " AND NOT EXISTS (SELECT 1 FROM provider WHERE provider.id = t.provider) LIMIT 1"},
    {"its account is not of its last entry",
     "SELECT 'player ' || coalesce(player.id, account.player_number)"
     " FROM ledger_account AS account"
     " LEFT JOIN player ON player.number = account.player_number"
     " LEFT JOIN ledger_transaction AS last ON last.number = account.last_number"
     " WHERE last.player_number IS NOT account.player_number"
     " OR last.sequence IS NOT account.sequence LIMIT 1"},
    {"it is not what is said to be the last",
     "SELECT 'transaction number ' || coalesce(max(number), 0) FROM ledger_transaction"
     " HAVING coalesce(max(number), 0) IS NOT (SELECT number FROM ledger_last WHERE one = 1)"
     " LIMIT 1"},
    {"no day begins there",
     "SELECT 'transaction number ' || first_number FROM ledger_day AS span"
     " WHERE first_number > (SELECT number FROM ledger_last WHERE one = 1)"
     " OR day IS (SELECT before.day FROM ledger_day AS before"
     "  WHERE before.first_number < span.first_number ORDER BY before.first_number DESC LIMIT 1)"
     " LIMIT 1"},
    /* The rows of the ledger in one pass. */
    {NULL,
     "SELECT 'transaction ' || transaction_id, flaw FROM (SELECT t.transaction_id, CASE"
     " WHEN customer.number IS NOT t.customer_number THEN 'it is not of its customer''s player'"
     " WHEN t.previous >= t.number THEN 'it does not follow the entry before it'"
     " WHEN t.sequence IS NULL AND NOT EXISTS (SELECT 1 FROM ledger_decline AS chained"
     "  WHERE chained.transaction_number = t.number AND chained.player_number = t.player_number)"
     " THEN 'it is declined and not chained'"
     " WHEN t.settles IS NOT NULL AND (debit.player_number IS NOT t.player_number"
     "  OR debit.transaction_id <> t.reference OR debit.operation <> 'DEBIT'"
     "  OR debit.outcome <> 'applied' OR debit.provider IS NOT t.provider)"
     " THEN 'it does not settle its debit' END AS flaw FROM ledger_transaction AS t"
     " LEFT JOIN player ON player.number = t.player_number"
     " LEFT JOIN customer ON customer.id = player.customer_id"
     " LEFT JOIN ledger_transaction AS debit ON debit.number = t.settles)"
     " WHERE flaw IS NOT NULL LIMIT 1"},
    {"nothing says of what day it is",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t WHERE t.number <"
     " (SELECT coalesce(min(first_number), 9223372036854775807) FROM ledger_day) LIMIT 1"},
    {"it is not of the day that is said",
     "SELECT 'transaction ' || ledger_transaction.transaction_id FROM " OF_DAYS
     " WHERE ledger_transaction.created_ms / " LEDGER_DAY " <> span.day LIMIT 1"},
    /* Those of ledger_transaction are checked above. */
    {"what it refers to is not there",
     "SELECT 'row ' || coalesce(broken.rowid, '') || ' of ' || broken.\"table\""
     " FROM pragma_table_list AS listed, pragma_foreign_key_check(listed.name) AS broken"
     " WHERE listed.schema = 'main' AND listed.name <> 'ledger_transaction' LIMIT 1"},
};

static const struct player_record *player_of(struct platform_store *store, int64_t number)
{
    const struct cached_player *player = NULL;
    struct error error;
    return sqlite_player(sqlite_store_of(store), number, &player, &error) == STATUS_OK
               ? &player->record
               : NULL;
}

const struct ledger_texts sqlite_ledger_texts = {
    .player_of = player_of,
    .transactions = LEDGER_TEXT_TRANSACTIONS(COLUMNS, ""),
    .entered = ENTERED(JOINS, ""),
    .entered_of_provider = ENTERED(ORIGIN, " AND " PROVIDER " = $4"),
    .entries_of_player = OF_PLAYER ROWS_OF(CHAIN),
    .entries_of_player_and_provider = OF_PLAYER
    "SELECT " COLUMNS " FROM (" CHAIN ") AS wanted"
    " CROSS JOIN ledger_transaction ON ledger_transaction.number = wanted.number" ORIGIN
    " WHERE " PROVIDER " = $4",
    .entries = ENTRIES(JOINS, ""),
    .entries_of_provider = ENTRIES(ORIGIN, " AND " PROVIDER " = $2"),
    .last_sequence = "SELECT coalesce(ledger_account.sequence, 0) FROM player"
                     " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"
                     " WHERE player.id = $1",
    .cut_off = ROWS_OF("SELECT number FROM ledger_transaction WHERE player_number ="
                       " (SELECT number FROM player WHERE id = $1) AND sequence >= $2"
                       " AND sequence < $3 ORDER BY sequence LIMIT -1"),
    .chained = "SELECT " COLUMNS ", before.sequence, before.balance_minor, before.hash, 0"
               " FROM ledger_transaction" BEFORE
               " WHERE ledger_transaction.sequence IS NOT NULL ORDER BY ledger_transaction.number",
    .chained_since =
        "SELECT " COLUMNS ", before.sequence, before.balance_minor, before.hash,"
        " before.number < " SINCE " FROM ledger_transaction" BEFORE
        " WHERE ledger_transaction.number >= " SINCE
        " AND ledger_transaction.sequence IS NOT NULL ORDER BY ledger_transaction.number",
    .declines = LEDGER_TEXT_DECLINES(COLUMNS, " CROSS JOIN ", ""),
    .accounts = LEDGER_TEXT_ACCOUNTS(LAST),
    .accounts_since = LEDGER_TEXT_ACCOUNTS(LAST) " WHERE player.number IN (SELECT player_number"
                                                 " FROM ledger_transaction WHERE number >= " SINCE
                                                 " AND sequence IS NOT NULL)",
    .newest =
        "SELECT " COLUMNS ", " LEDGER_ACCOUNT_COLUMNS ", previous.hash, ledger_transaction.number"
        " FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512)"
        "  AS ledger_transaction" JOINS
        " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"
        " LEFT JOIN ledger_transaction AS previous"
        "  ON previous.number = ledger_transaction.previous"
        " WHERE ledger_transaction.sequence IS NOT NULL",
    .sums = LEDGER_TEXT_SUMS(OF_DAYS ORIGIN, DAYS, LEDGER_SUM_KEYS(GAME, ROUND, PROVIDER, ""),
                             PROVIDER),
    .checks = checks,
    .check_count = sizeof checks / sizeof checks[0],
};
