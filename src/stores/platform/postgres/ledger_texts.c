/* The SQL of the ledger's readers (ledger/texts.h) in PostgreSQL. */
#include "stores/platform_ledger.h"

#include "stores/platform/ledger/texts.h"
#include "stores/platform/postgres/ledger.h"

#define STRING_(value) #value
#define STRING(value) STRING_(value)

#define JOINS                                                          \
    " JOIN player ON player.number = ledger_transaction.player_number" \
    " JOIN currency ON currency.code = player.currency"                \
    " LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number"
#define COLUMNS LEDGER_TRANSACTION_COLUMNS

/* The reference of an entry: a CREDIT leads to its DEBIT, a ROLLBACK to its target, and to the
 * DEBIT of that. */
#define REFERRED(as, from)                                                              \
    " LEFT JOIN ledger_transaction AS " as " ON " as ".operation IS NOT NULL AND " as   \
    ".owner_number = ledger_transaction.owner_number AND " as ".transaction_id = " from \
    ".reference"
#define ORIGIN                                                 \
    JOINS REFERRED("one", "ledger_transaction")                \
        REFERRED("two", "one") " LEFT JOIN game ON game.id = " \
                               "coalesce(ledger_transaction.game_id, one.game_id, two.game_id)"
#define BYTES " COLLATE \"C\""
#define GAME "coalesce(ledger_transaction.game_id, one.game_id, two.game_id, '')"
#define ROUND "coalesce(ledger_transaction.round_id, one.round_id, two.round_id, '')"
#define PROVIDER "coalesce(provider.id, game.provider_id, '')"

#define ENTRIES(origin)                                 \
    "SELECT " COLUMNS " FROM ledger_transaction" origin \
    " WHERE ledger_transaction.sequence IS NOT NULL"
#define BY_PLAYER " ORDER BY ledger_transaction.player_number, ledger_transaction.sequence"
#define OF_PLAYER                                                                              \
    " AND ledger_transaction.player_number = (SELECT number FROM player WHERE player.id = $1)" \
    " AND ledger_transaction.sequence >= $2 AND ledger_transaction.sequence < $3"
#define OF_CUSTOMER " AND ($1 = '' OR player.customer_id = $1)"
#define ENTERED                                                                       \
    " AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2" \
    " AND ($3 = '' OR player.customer_id = $3)"
#define BY_TIME " ORDER BY ledger_transaction.created_ms, ledger_transaction.number"

/* Of a player, all from the first that is of the time on: clocks of instances differ, and go back,
 * so an entry may seem older than one that it follows. */
#define FIRSTS                                                       \
    "(SELECT since.player_number, min(since.sequence) AS sequence"   \
    " FROM ledger_transaction AS since WHERE since.created_ms >= $1" \
    " AND since.sequence IS NOT NULL GROUP BY since.player_number)"
#define LAST                                                                             \
    "last.player_number = player.number AND last.sequence = (SELECT max(entry.sequence)" \
    " FROM ledger_transaction AS entry WHERE entry.player_number = player.number)"

static const struct ledger_check_text checks[] = {
    {"it is not what was opened",
     "SELECT 'player ' || player.id FROM player"
     " LEFT JOIN player_opened AS opened ON opened.player_number = player.number"
     " LEFT JOIN currency ON currency.code = player.currency"
     " WHERE (opened.id, opened.customer_id, opened.reference, opened.currency, opened.exponent,"
     "  opened.created_ms) IS DISTINCT FROM (player.id, player.customer_id, player.reference,"
     "  player.currency, currency.exponent, player.created_ms) LIMIT 1"},
    LEDGER_CHECKS_SHARED,
    {"it is not of its customer's player",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " LEFT JOIN player ON player.number = t.player_number"
     " LEFT JOIN customer ON customer.id = player.customer_id"
     " WHERE customer.number IS NULL"
     " OR (t.owner_number > 0 AND customer.number <> t.owner_number) LIMIT 1"},
    {"there is no such provider",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.owner_number <= 0 AND NOT EXISTS (SELECT FROM provider"
     "  WHERE provider.number = -t.owner_number) LIMIT 1"},
    {"its player has no account",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.sequence IS NOT NULL AND NOT EXISTS (SELECT FROM ledger_account AS account"
     "  WHERE account.player_number = t.player_number) LIMIT 1"},
    {"its account is not of its last entry",
     "SELECT 'player number ' || account.player_number FROM ledger_account AS account"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS last"
     "  WHERE last.player_number = account.player_number AND last.sequence = account.sequence)"
     " LIMIT 1"},
    {"it refers to no debit that it could settle",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.operation = 'CREDIT' AND t.outcome = 'applied' AND t.reference IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_transaction AS debit"
     "  WHERE debit.owner_number = t.owner_number AND debit.transaction_id = t.reference"
     "  AND debit.player_number = t.player_number AND debit.operation = 'DEBIT'"
     "  AND debit.outcome = 'applied' AND NOT debit.late) LIMIT 1"},
    {"it is not marked as having rolled back its reference",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.operation = 'ROLLBACK' AND t.sequence IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_rollback AS mark"
     "  WHERE mark.owner_number = t.owner_number AND mark.target_id = t.reference"
     "  AND mark.transaction_number = t.number) LIMIT 1"},
    {"it is marked as rolled back by what is not its ROLLBACK",
     "SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS undo"
     "  WHERE undo.number = mark.transaction_number AND undo.operation = 'ROLLBACK'"
     "  AND undo.sequence IS NOT NULL AND undo.owner_number = mark.owner_number"
     "  AND undo.player_number = mark.player_number AND undo.reference = mark.target_id) LIMIT 1"},
    {"it is rolled back and nothing holds its key",
     "SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark"
     " WHERE NOT EXISTS (SELECT FROM ledger_transaction AS target"
     "  WHERE target.owner_number = mark.owner_number"
     "  AND target.transaction_id = mark.target_id AND target.player_number = mark.player_number"
     "  AND NOT target.late) LIMIT 1"},
    /* The key follows its ROLLBACK by at most the length of a batch, and has the same time. */
    {"its key is held for no ROLLBACK",
     "SELECT 'transaction id ' || key.transaction_id FROM ledger_transaction AS key"
     " WHERE key.operation IS NULL AND NOT EXISTS (SELECT FROM ledger_rollback AS mark"
     "  JOIN ledger_transaction AS undo ON undo.number = mark.transaction_number"
     "  WHERE mark.owner_number = key.owner_number AND mark.target_id = key.transaction_id"
     "  AND mark.player_number = key.player_number AND undo.created_ms = key.created_ms"
     "  AND undo.number = key.number - " STRING(LEDGER_BATCH_MAX) " AND NOT key.late) LIMIT 1"},
    {"it is late for an id that nothing held",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.late AND NOT EXISTS (SELECT FROM ledger_transaction AS key"
     "  WHERE key.owner_number = t.owner_number AND key.transaction_id = t.transaction_id"
     "  AND key.operation IS NULL) LIMIT 1"},
    {"it is declined and not chained",
     "SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t"
     " WHERE t.sequence IS NULL AND t.operation IS NOT NULL"
     " AND NOT EXISTS (SELECT FROM ledger_decline AS chained"
     "  WHERE chained.transaction_number = t.number AND chained.player_number = t.player_number)"
     " LIMIT 1"},
    {"there is no such customer, or currency",
     "SELECT 'the clearing account of customer number ' || clearing.customer_number"
     " FROM ledger_clearing AS clearing WHERE NOT EXISTS (SELECT FROM customer"
     "  WHERE customer.number = clearing.customer_number) OR NOT EXISTS (SELECT FROM currency"
     "  WHERE currency.code = clearing.currency) LIMIT 1"},
};

const struct ledger_texts postgres_ledger_texts = {
    .transactions = LEDGER_TEXT_TRANSACTIONS(COLUMNS, JOINS),
    .entered = ENTRIES(JOINS) ENTERED BY_TIME,
    .entered_of_provider = ENTRIES(ORIGIN) ENTERED " AND " PROVIDER " = $4" BY_TIME,
    .entries_of_player = ENTRIES(JOINS) OF_PLAYER BY_PLAYER,
    .entries_of_player_and_provider = ENTRIES(ORIGIN) OF_PLAYER " AND " PROVIDER " = $4" BY_PLAYER,
    .entries = ENTRIES(JOINS) OF_CUSTOMER BY_PLAYER,
    .entries_of_provider = ENTRIES(ORIGIN) OF_CUSTOMER " AND " PROVIDER " = $2" BY_PLAYER,
    .chained = "SELECT " COLUMNS ", lag(ledger_transaction.sequence) OVER whose,"
               " lag(ledger_transaction.balance_minor) OVER whose,"
               " lag(ledger_transaction.hash) OVER whose, 0 FROM ledger_transaction" JOINS
               " WHERE ledger_transaction.sequence IS NOT NULL WINDOW whose AS"
               " (PARTITION BY ledger_transaction.player_number"
               "  ORDER BY ledger_transaction.sequence)" BY_PLAYER,
    .chained_since =
        "SELECT " COLUMNS ", before.sequence, before.balance_minor, before.hash,"
        " (ledger_transaction.sequence = first.sequence)::int FROM " FIRSTS " AS first"
        " JOIN ledger_transaction ON ledger_transaction.player_number = first.player_number"
        " AND ledger_transaction.sequence >= first.sequence" JOINS
        " LEFT JOIN ledger_transaction AS before"
        " ON before.player_number = ledger_transaction.player_number"
        " AND before.sequence = ledger_transaction.sequence - 1" BY_PLAYER,
    .declines = LEDGER_TEXT_DECLINES(COLUMNS, " JOIN ", JOINS),
    .accounts = LEDGER_TEXT_ACCOUNTS(LAST),
    .accounts_since = LEDGER_TEXT_ACCOUNTS(LAST) " WHERE player.number IN"
                                                 " (SELECT player_number FROM " FIRSTS " AS first)",
    .newest =
        "SELECT " COLUMNS ", " LEDGER_ACCOUNT_COLUMNS ", previous.hash, ledger_transaction.number"
        " FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512)"
        "  AS ledger_transaction"
        " CROSS JOIN LATERAL (SELECT * FROM player"
        "  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player"
        " JOIN currency ON currency.code = player.currency"
        " LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number"
        " LEFT JOIN LATERAL (SELECT * FROM ledger_account"
        "  WHERE ledger_account.player_number = ledger_transaction.player_number LIMIT 1)"
        "  AS ledger_account ON true"
        " LEFT JOIN LATERAL (SELECT entry.hash FROM ledger_transaction AS entry"
        "  WHERE entry.player_number = ledger_transaction.player_number"
        "  AND entry.sequence = ledger_transaction.sequence - 1 LIMIT 1) AS previous ON true"
        " WHERE ledger_transaction.sequence IS NOT NULL",
    .sums = LEDGER_TEXT_SUMS("ledger_transaction" ORIGIN, "true",
                             LEDGER_SUM_KEYS(GAME, ROUND, PROVIDER, BYTES), PROVIDER),
    .checks = checks,
    .check_count = sizeof checks / sizeof checks[0],
};
