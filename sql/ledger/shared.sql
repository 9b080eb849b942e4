-- The SQL by which the ledger is read, as far as both engines share it (tools/embed_ledger_sql.py
-- has the form of these files). An engine's file defines the parts in which its schema differs:
--
--   WHOSE, OWN_GAME, OWN_PROVIDER, OWN_LAUNCH   columns of a row of ledger_transaction: the player's
--                                               four, and three with an expression of their own
--   ROW_JOINS                                   the joins that these need
--   GAME, ROUND, PROVIDER, ORIGIN               those that an entry belongs to, and their joins
--   INNER                                       its word for a join in the order of the text
--   LAST                                        how an account names its last entry
--   BYTES                                       its word for the order of bytes
--   SUMMED, SUMMED_WHERE                        where entries of a time are found

-- ---- columns: their readers are in src/stores/platform/ledger/rows.c, and know their order ----

-- define DAY
86400000

-- Of the tables player, currency and ledger_account (LEFT JOIN).
-- define PLAYER_COLUMNS
player.id, player.customer_id, player.reference, player.currency, currency.exponent,
player.created_ms
-- define ACCOUNT_COLUMNS
{PLAYER_COLUMNS}, ledger_account.balance_minor, ledger_account.sequence, ledger_account.head

-- Of the table ledger_declined (LEFT JOIN).
-- define DECLINED_COLUMNS
ledger_declined.declines, ledger_declined.head AS declines_head

-- define COLUMNS
{WHOSE}, ledger_transaction.transaction_id, ledger_transaction.reference, {OWN_GAME},
ledger_transaction.round_id, ledger_transaction.operation, ledger_transaction.outcome,
ledger_transaction.amount_minor, ledger_transaction.created_ms, ledger_transaction.sequence,
ledger_transaction.movement_minor, ledger_transaction.balance_minor, ledger_transaction.hash,
{OWN_PROVIDER}, {OWN_LAUNCH}, ledger_transaction.kind, ledger_transaction.round_ended

-- ---- rows ----

-- define NOTHING

-- define OF_PROVIDER_4
AND {PROVIDER} = $4
-- define OF_PROVIDER_2
AND {PROVIDER} = $2

-- field transactions
SELECT {COLUMNS} FROM ledger_transaction {ROW_JOINS}
WHERE ledger_transaction.operation IS NOT NULL ORDER BY ledger_transaction.number

-- field declines
SELECT {COLUMNS}, ledger_decline.position, ledger_decline.hash, before.hash
FROM ledger_decline {INNER} ledger_transaction
  ON ledger_transaction.number = ledger_decline.transaction_number
  AND ledger_transaction.operation IS NOT NULL {ROW_JOINS}
LEFT JOIN ledger_decline AS before ON before.player_number = ledger_decline.player_number
  AND before.position = ledger_decline.position - 1
ORDER BY ledger_decline.player_number, ledger_decline.position

-- An account, its count and head of declines, its last entry and its last decline.
-- field accounts
SELECT {ACCOUNT_COLUMNS}, {DECLINED_COLUMNS}, last.sequence, last.balance_minor, last.hash,
  (SELECT max(position) FROM ledger_decline WHERE ledger_decline.player_number = player.number),
  last_decline.hash
FROM player JOIN currency ON currency.code = player.currency
LEFT JOIN ledger_account ON ledger_account.player_number = player.number
LEFT JOIN ledger_transaction AS last ON {LAST}
LEFT JOIN ledger_declined ON ledger_declined.player_number = player.number
LEFT JOIN ledger_decline AS last_decline ON last_decline.player_number = player.number
  AND last_decline.position = ledger_declined.declines

-- field accounts_since
{accounts} WHERE player.number IN ({PLAYERS_SINCE})

-- The clearing accounts; also what players hold without one, which must be nothing.
-- field clearings
SELECT customer.id, coalesce(ledger_clearing.currency, held.currency),
  coalesce(ledger_clearing.balance_minor, 0), coalesce(held.balance_minor, 0)
FROM ledger_clearing FULL JOIN
  (SELECT customer.number, player.currency,
     CAST(sum(ledger_account.balance_minor) AS bigint) AS balance_minor FROM ledger_account
   JOIN player ON player.number = ledger_account.player_number
   JOIN customer ON customer.id = player.customer_id
   GROUP BY customer.number, player.currency) AS held
  ON held.number = ledger_clearing.customer_number AND held.currency = ledger_clearing.currency
LEFT JOIN customer ON customer.number = coalesce(ledger_clearing.customer_number, held.number)
WHERE ledger_clearing.currency IS NOT NULL OR held.balance_minor <> 0
ORDER BY customer.number, 2

-- A player whose account has another last sequence than there are entries.
-- field miscounted
SELECT player.id, max(ledger_transaction.sequence) FROM ledger_transaction
JOIN player ON player.number = ledger_transaction.player_number
LEFT JOIN ledger_account ON ledger_account.player_number = player.number
WHERE ledger_transaction.sequence IS NOT NULL GROUP BY player.id
HAVING count(*) <> coalesce(max(ledger_account.sequence), 0) ORDER BY 1 LIMIT 1

-- ---- sums of entries ----

-- By customer and currency and, where $5, $6 and $7 are 1, by day, by provider and game, and by
-- round. Of the time from $1 until before $2, of the customer $3 or all (''), and of the provider $4
-- or all.
-- define SUM(transfer, operation, value)
, CAST(sum(CASE WHEN transfer = {transfer} AND operation = {operation} THEN {value} ELSE 0 END)
  AS bigint)
-- define SUMS(transfer)
{SUM({transfer}, 'DEBIT', 1)}
{SUM({transfer}, 'CREDIT', 1)}
{SUM({transfer}, 'ROLLBACK', 1)}
{SUM({transfer}, 'DEBIT', -movement)}
{SUM({transfer}, 'CREDIT', movement)}
{SUM({transfer}, 'ROLLBACK' AND movement > 0, movement)}
{SUM({transfer}, 'ROLLBACK' AND movement < 0, -movement)}

-- field sums
SELECT customer_id, currency, exponent, day, provider, game, round {SUMS(0)} {SUMS(1)}
FROM (SELECT player.customer_id {BYTES} AS customer_id, player.currency {BYTES} AS currency,
    currency.exponent AS exponent,
    CASE WHEN $5 = 1 THEN ledger_transaction.created_ms / {DAY} ELSE 0 END AS day,
    CASE WHEN $6 = 1 THEN {PROVIDER} ELSE '' END {BYTES} AS provider,
    CASE WHEN $6 = 1 THEN {GAME} ELSE '' END {BYTES} AS game,
    CASE WHEN $7 = 1 THEN {ROUND} ELSE '' END {BYTES} AS round,
    CASE WHEN {PROVIDER} = '' AND {GAME} = '' AND {ROUND} = '' THEN 1 ELSE 0 END AS transfer,
    ledger_transaction.operation AS operation, ledger_transaction.movement_minor AS movement
  FROM {SUMMED} {ORIGIN} WHERE {SUMMED_WHERE} AND ledger_transaction.sequence IS NOT NULL
    AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2
    AND ($3 = '' OR player.customer_id = $3) AND ($4 = '' OR {PROVIDER} = $4)) AS entry
GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 4, 5, 6, 7

-- ---- checks: what is wrong, and a statement that names the first row of which that holds ----

-- check it was opened and is not there
SELECT 'player ' || opened.id FROM player_opened AS opened
WHERE NOT EXISTS (SELECT 1 FROM player WHERE player.number = opened.player_number) LIMIT 1

-- check it is chained as a decline and is none
SELECT 'transaction number ' || chained.transaction_number FROM ledger_decline AS chained
WHERE NOT EXISTS (SELECT 1 FROM ledger_transaction AS t
  WHERE t.number = chained.transaction_number AND t.player_number = chained.player_number
  AND t.sequence IS NULL AND t.operation IS NOT NULL) LIMIT 1

-- check its declines have no chain
SELECT 'player number ' || declined.player_number FROM ledger_declined AS declined
WHERE NOT EXISTS (SELECT 1 FROM ledger_decline AS last
  WHERE last.player_number = declined.player_number AND last.position = declined.declines) LIMIT 1
