-- The SQL by which the ledger is read in SQLite (shared.sql has the rest). No index leads from a
-- player to its entries: an entry names the one before it, and an index holds the first of every 256.

-- define WHOSE
ledger_transaction.player_number, NULL, NULL, NULL
-- define OWN_GAME
ledger_transaction.game
-- define OWN_PROVIDER
ledger_transaction.provider
-- define OWN_SANDBOX
NULL
-- define OWN_LAUNCH
ledger_transaction.launch
-- define ROW_JOINS

-- define INNER
CROSS JOIN
-- define BYTES

-- define LAST
last.number = ledger_account.last_number AND last.player_number = player.number

-- define JOINS
CROSS JOIN player ON player.number = ledger_transaction.player_number
CROSS JOIN currency ON currency.code = player.currency

-- define ROWS
CROSS JOIN ledger_transaction ON ledger_transaction.number = wanted.number

-- Most ROLLBACKs are of one of the player's last entries. To look there first spares the index of ids,
-- which a reader would have to bring up to the newest row.
-- define NEARBY(from)
(WITH RECURSIVE before (number, previous, id, provider, steps) AS (
  SELECT NULL, {from}.previous, NULL, NULL, 0
  UNION ALL
  SELECT entry.number, entry.previous, entry.transaction_id, entry.provider, before.steps + 1
  FROM before CROSS JOIN ledger_transaction AS entry ON entry.number = before.previous
    AND entry.player_number = {from}.player_number
  WHERE before.steps < 32)
SELECT before.number FROM before
  WHERE before.id = {from}.reference AND before.provider IS ledger_transaction.provider LIMIT 1)

-- The reference of an entry that does not name its own game and round: a CREDIT leads to its DEBIT,
-- a ROLLBACK to its target, and to the DEBIT of that. Entries alone, which were there before: what is
-- declined may come later.
-- define REFERRED(from)
CASE WHEN {from}.reference IS NOT NULL
  AND (ledger_transaction.game IS NULL OR ledger_transaction.round_id IS NULL)
THEN coalesce({from}.settles, {NEARBY({from})}, ledger_id_number(
  coalesce(ledger_transaction.provider, player.customer_id), {from}.reference)) END
-- define ORIGIN
{JOINS}
LEFT JOIN ledger_transaction AS one ON one.number = {REFERRED(ledger_transaction)}
  AND one.sequence IS NOT NULL
LEFT JOIN ledger_transaction AS two ON two.number = {REFERRED(one)}
  AND two.sequence IS NOT NULL
LEFT JOIN game ON game.id = coalesce(ledger_transaction.game, one.game, two.game)
-- define ORIGIN_OF_SUM
{ORIGIN}
-- define GAME
coalesce(ledger_transaction.game, one.game, two.game, '')
-- define ROUND
coalesce(ledger_transaction.round_id, one.round_id, two.round_id, '')
-- define MOVED
(SELECT json_extract(past.value, '$[1]') FROM json_each(game.moved) AS past
  WHERE json_extract(past.value, '$[0]') > ledger_transaction.created_ms
  ORDER BY json_extract(past.value, '$[0]') LIMIT 1)

-- The rows of the days that a time touches.
-- define OF_DAYS
ledger_day AS span CROSS JOIN ledger_transaction
  ON ledger_transaction.number >= span.first_number
  AND ledger_transaction.number < {NEXT_DAY}
-- define NEXT_DAY
coalesce((SELECT min(first_number) FROM ledger_day AS next
  WHERE next.first_number > span.first_number), 9223372036854775807)
-- define SUMMED
ledger_day AS span CROSS JOIN ledger_transaction ON ledger_transaction.number >= max(
    span.first_number, CASE WHEN $8 = 1 THEN (SELECT number + 1 FROM ledger_summed) ELSE 0 END)
  AND ledger_transaction.number < {NEXT_DAY}
-- define SUMMED_WHERE
span.day BETWEEN $1 / {DAY} AND ($2 - 1) / {DAY}
-- define SUMMED_SINCE_KEPT
{SUMMED_WHERE}

-- sum() of integers fails beyond 2^63, and total() rounds.
-- define STOPPED_SUM(value)
CAST(min(sum(({value}) / 65536) * 65536 + sum(({value}) % 65536), 4611686018427387904) AS bigint)

-- define LAST_NUMBER
(SELECT coalesce(max(number), 0) FROM ledger_transaction)

-- define SETTLED
ledger_transaction.settles

-- Only numbers are sorted, and not rows. LIMIT keeps their order; but where it stands beside ORDER BY
-- itself, SQLite sorts by inserting into a tree, which takes several times as long.
-- define SORTED
SELECT {COLUMNS} FROM (SELECT number FROM sorted LIMIT -1) AS wanted {ROWS}
-- define ENTERED(origin, condition)
WITH sorted AS MATERIALIZED (SELECT ledger_transaction.number FROM {OF_DAYS} {{origin}}
  WHERE {SUMMED_WHERE} AND ledger_transaction.sequence IS NOT NULL
  AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2
  AND ($3 = '' OR player.customer_id = $3) {{condition}}
  ORDER BY ledger_transaction.created_ms, ledger_transaction.number) {SORTED}
-- define ENTRIES(origin, condition)
WITH sorted AS MATERIALIZED (SELECT ledger_transaction.number FROM ledger_transaction {{origin}}
  WHERE ledger_transaction.sequence IS NOT NULL
  AND ($1 = '' OR player.customer_id = $1) {{condition}}
  ORDER BY ledger_transaction.player_number, ledger_transaction.sequence) {SORTED}

-- field entered
{ENTERED(JOINS, NOTHING)}
-- field entered_of_report
{ENTERED(ORIGIN, OF_REPORT)}
-- field entries
{ENTRIES(JOINS, NOTHING)}
-- field entries_of_provider
{ENTRIES(ORIGIN, OF_PROVIDER_2)}

-- From the last entry of each block of 256 that is wanted backwards to its first.
-- define OF_PLAYER
WITH RECURSIVE whose (number, last_number, sequence) AS (
  SELECT player.number, ledger_account.last_number, ledger_account.sequence FROM player
  CROSS JOIN ledger_account ON ledger_account.player_number = player.number
  WHERE player.id = $1),
chain (number, previous, sequence) AS (
  SELECT entry.number, entry.previous, entry.sequence FROM whose
  CROSS JOIN ledger_transaction AS entry ON entry.number = whose.last_number
    AND entry.player_number = whose.number AND entry.sequence = whose.sequence
    AND whose.sequence >= $2 AND (whose.sequence - 1) / 256 <= ($3 - 2) / 256
  UNION ALL
  SELECT entry.number, entry.previous, entry.sequence FROM whose
  CROSS JOIN ledger_transaction AS next ON next.player_number = whose.number
    AND next.sequence > $2 AND next.sequence <= $3 + 255 AND next.sequence > 1
    AND next.sequence <= whose.sequence AND next.sequence % 256 = 1
  CROSS JOIN ledger_transaction AS entry ON entry.number = next.previous
    AND entry.player_number = whose.number AND entry.sequence = next.sequence - 1
  UNION ALL
  SELECT entry.number, entry.previous, entry.sequence FROM whose CROSS JOIN chain
  CROSS JOIN ledger_transaction AS entry ON entry.number = chain.previous
    AND entry.player_number = whose.number AND entry.sequence = chain.sequence - 1
  WHERE chain.sequence % 256 <> 1)
SELECT {COLUMNS} FROM (SELECT chain.number FROM chain
  WHERE chain.sequence >= $2 AND chain.sequence < $3
  ORDER BY chain.sequence LIMIT -1) AS wanted {ROWS}

-- field entries_of_player
{OF_PLAYER}
-- field entries_of_player_and_provider
{OF_PLAYER} {ORIGIN} WHERE {PROVIDER} = $4
-- Of the entries after $1, up to $2: a row each.
-- field summed
{KEPT_ENTRIES(ORIGIN)} AND ledger_transaction.number > $1 AND ledger_transaction.number <= $2
-- field last_sequence
SELECT coalesce(ledger_account.sequence, 0) FROM player
LEFT JOIN ledger_account ON ledger_account.player_number = player.number WHERE player.id = $1
-- field cut_off
SELECT {COLUMNS} FROM (SELECT number FROM ledger_transaction
  WHERE player_number = (SELECT number FROM player WHERE id = $1)
  AND sequence >= $2 AND sequence < $3 ORDER BY sequence LIMIT -1) AS wanted {ROWS}

-- define BEFORE
LEFT JOIN ledger_transaction AS before ON before.number = ledger_transaction.previous
  AND before.player_number = ledger_transaction.player_number
-- define SINCE
(SELECT coalesce(min(first_number), 9223372036854775807) FROM ledger_day WHERE day >= $1 / {DAY})
-- define FROM_THEN_ON
ledger_transaction {ORIGIN} WHERE ledger_transaction.number >= {SINCE}
-- define FROM_THEN_ON_OF_PLAYER
(WITH RECURSIVE mine (number, previous) AS (
  SELECT entry.number, entry.previous FROM player
  CROSS JOIN ledger_account ON ledger_account.player_number = player.number
  CROSS JOIN ledger_transaction AS entry ON entry.number = ledger_account.last_number
  WHERE player.id = $6
  UNION ALL
  SELECT entry.number, entry.previous FROM mine
  CROSS JOIN ledger_transaction AS entry ON entry.number = mine.previous
  WHERE entry.number >= {SINCE}) SELECT number FROM mine) AS wanted {ROWS} {ORIGIN} WHERE true
-- define PLAYERS_SINCE
SELECT player_number FROM ledger_transaction WHERE number >= {SINCE} AND sequence IS NOT NULL

-- field chained
SELECT {COLUMNS}, before.sequence, before.balance_minor, before.hash, 0
FROM ledger_transaction {BEFORE}
WHERE ledger_transaction.sequence IS NOT NULL ORDER BY ledger_transaction.number
-- field chained_since
SELECT {COLUMNS}, before.sequence, before.balance_minor, before.hash, before.number < {SINCE}
FROM ledger_transaction {BEFORE}
WHERE ledger_transaction.number >= {SINCE} AND ledger_transaction.sequence IS NOT NULL
ORDER BY ledger_transaction.number

-- field newest
SELECT {COLUMNS}, {ACCOUNT_COLUMNS}, previous.hash, ledger_transaction.number
FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512) AS ledger_transaction
{JOINS}
LEFT JOIN ledger_account ON ledger_account.player_number = player.number
LEFT JOIN ledger_transaction AS previous ON previous.number = ledger_transaction.previous
WHERE ledger_transaction.sequence IS NOT NULL

-- field tail
SELECT {COLUMNS}, ledger_transaction.number FROM ledger_transaction
WHERE ledger_transaction.number >= $1 AND ledger_transaction.number <= $2
  AND ledger_transaction.sequence IS NOT NULL ORDER BY ledger_transaction.number LIMIT 1001

-- A page looks as far as edge, at the next entry at least: between two there may be any number of
-- declines. Last: whether entries lie beyond.
-- field tail_of_customer
WITH edge AS MATERIALIZED (SELECT coalesce((SELECT max(number) FROM ledger_transaction
    WHERE number > $1 AND number <= min($2, $1 + 5000) AND sequence IS NOT NULL),
  (SELECT min(number) FROM ledger_transaction
    WHERE number > $1 AND number <= $2 AND sequence IS NOT NULL), $1) AS number)
SELECT {COLUMNS}, ledger_transaction.number, EXISTS (SELECT 1 FROM ledger_transaction
    WHERE number > (SELECT number FROM edge) AND number <= $2 AND sequence IS NOT NULL)
FROM ledger_transaction
WHERE ledger_transaction.number >= $1 AND ledger_transaction.number <= (SELECT number FROM edge)
  AND ledger_transaction.sequence IS NOT NULL AND (ledger_transaction.number = $1
    OR ledger_transaction.customer_number = (SELECT number FROM customer WHERE id = $3)
    OR ledger_transaction.number = (SELECT number FROM edge))
ORDER BY ledger_transaction.number LIMIT $4

-- ---- rows with all that proves them (src/stores/platform/sqlite/rows.c) ----

-- Of an entry the hash of the one before it; of a decline its place and hash in the chain of
-- declines, and the hash before that. With CASE, SQLite does not look for the declines of entries.
-- define PROVED
SELECT {COLUMNS}, ledger_transaction.number, ledger_transaction.customer_number,
  ledger_transaction.player_number, ledger_transaction.previous, entry.hash,
  decline.position, decline.hash, before.hash
FROM ledger_transaction
LEFT JOIN ledger_transaction AS entry ON entry.number = ledger_transaction.previous
LEFT JOIN ledger_decline AS decline ON decline.transaction_number =
    CASE WHEN ledger_transaction.sequence IS NULL THEN ledger_transaction.number END
  AND decline.player_number = ledger_transaction.player_number
LEFT JOIN ledger_decline AS before ON before.player_number = decline.player_number
  AND before.position = decline.position - 1
-- field verified_row
{PROVED} WHERE ledger_transaction.number = ?1
-- field verified_rows
{PROVED} WHERE ledger_transaction.number BETWEEN $1 AND $2 ORDER BY ledger_transaction.number
-- Those that may say what became of the id $3.
-- field verified_rows_of_id
{PROVED} WHERE ledger_transaction.number BETWEEN $1 AND $2
  AND (ledger_transaction.transaction_id = $3 OR ledger_transaction.reference = $3
    OR ledger_transaction.operation = 'ROLLBACK') ORDER BY ledger_transaction.number

-- field player_of_number
SELECT {PLAYER_COLUMNS}, {SANDBOX} FROM player JOIN currency ON currency.code = player.currency
WHERE player.number = ?1

-- An account; whether it agrees with its last entry, and, if there is no account, that there is no
-- entry; and the number of that entry.
-- field account_of_number
SELECT {ACCOUNT_COLUMNS}, {DECLINED_COLUMNS},
  CASE WHEN ledger_account.player_number IS NULL
  THEN NOT EXISTS (SELECT 1 FROM ledger_transaction AS entry
    WHERE entry.player_number = player.number AND entry.sequence = 1 AND entry.sequence % 256 = 1)
  ELSE EXISTS (SELECT 1 FROM ledger_transaction AS last
    WHERE last.number = ledger_account.last_number AND last.player_number = player.number
    AND last.sequence = ledger_account.sequence AND last.hash = ledger_account.head
    AND last.balance_minor = ledger_account.balance_minor) END,
  coalesce(ledger_account.last_number, 0)
FROM player JOIN currency ON currency.code = player.currency
LEFT JOIN ledger_account ON ledger_account.player_number = player.number
LEFT JOIN ledger_declined ON ledger_declined.player_number = player.number
WHERE player.number = ?1

-- SQLite does not find a number after BETWEEN.
-- define OF_ONE
player.customer_id = $1
-- define ORDER_OF_ONE

-- field listed
SELECT {ACCOUNT_COLUMNS}, last.created_ms
FROM json_each('["' || replace($1, ',', '","') || '"]') AS asked
CROSS JOIN player ON player.id = asked.value
CROSS JOIN currency ON currency.code = player.currency
LEFT JOIN ledger_account ON ledger_account.player_number = player.number
LEFT JOIN ledger_transaction AS last ON {LAST} ORDER BY asked.key

-- ---- checks ----

-- check it is not what was opened
SELECT 'player ' || player.id FROM player
LEFT JOIN player_opened AS opened ON opened.player_number = player.number
LEFT JOIN currency ON currency.code = player.currency
WHERE opened.id IS NOT player.id OR opened.customer_id IS NOT player.customer_id
OR opened.reference IS NOT player.reference OR opened.currency IS NOT player.currency
OR opened.exponent IS NOT currency.exponent OR opened.created_ms IS NOT player.created_ms LIMIT 1

-- check there is no such provider
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.provider IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM provider WHERE provider.id = t.provider) LIMIT 1

-- check its account is not of its last entry
SELECT 'player ' || coalesce(player.id, account.player_number) FROM ledger_account AS account
LEFT JOIN player ON player.number = account.player_number
LEFT JOIN ledger_transaction AS last ON last.number = account.last_number
WHERE last.player_number IS NOT account.player_number
OR last.sequence IS NOT account.sequence LIMIT 1

-- check it is not what is said to be the last
SELECT 'transaction number ' || coalesce(max(number), 0) FROM ledger_transaction
HAVING coalesce(max(number), 0) IS NOT (SELECT number FROM ledger_last WHERE one = 1) LIMIT 1

-- check no day begins there
SELECT 'transaction number ' || first_number FROM ledger_day AS span
WHERE first_number > (SELECT number FROM ledger_last WHERE one = 1)
OR day IS (SELECT before.day FROM ledger_day AS before
  WHERE before.first_number < span.first_number ORDER BY before.first_number DESC LIMIT 1) LIMIT 1

-- The rows of the ledger in one pass; the second column says what is wrong.
-- check
SELECT 'transaction ' || transaction_id, flaw FROM (SELECT t.transaction_id, CASE
  WHEN customer.number IS NOT t.customer_number THEN 'it is not of its customer''s player'
  WHEN t.previous >= t.number THEN 'it does not follow the entry before it'
  WHEN t.sequence IS NULL AND NOT EXISTS (SELECT 1 FROM ledger_decline AS chained
    WHERE chained.transaction_number = t.number AND chained.player_number = t.player_number)
  THEN 'it is declined and not chained'
  WHEN t.settles IS NOT NULL AND (debit.player_number IS NOT t.player_number
    OR debit.transaction_id <> t.reference OR debit.operation <> 'DEBIT'
    OR debit.outcome <> 'applied' OR debit.provider IS NOT t.provider)
  THEN 'it does not settle its debit' END AS flaw
  FROM ledger_transaction AS t
  LEFT JOIN player ON player.number = t.player_number
  LEFT JOIN customer ON customer.id = player.customer_id
  LEFT JOIN ledger_transaction AS debit ON debit.number = t.settles)
WHERE flaw IS NOT NULL LIMIT 1

-- check nothing says of what day it is
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.number < (SELECT coalesce(min(first_number), 9223372036854775807) FROM ledger_day) LIMIT 1

-- check it is not of the day that is said
SELECT 'transaction ' || ledger_transaction.transaction_id FROM {OF_DAYS}
WHERE ledger_transaction.created_ms / {DAY} <> span.day LIMIT 1

-- Those of ledger_transaction are checked above.
-- check what it refers to is not there
SELECT 'row ' || coalesce(broken.rowid, '') || ' of ' || broken."table"
FROM pragma_table_list AS listed, pragma_foreign_key_check(listed.name) AS broken
WHERE listed.schema = 'main' AND listed.name <> 'ledger_transaction' LIMIT 1

-- By day, customer and operation: numbers are grouped in a third of the time that all names of a sum take.
-- check its kept sums are not those of its entries
SELECT 'day ' || day || ' of customer ' || coalesce((SELECT id FROM customer WHERE number = owner), '')
FROM (SELECT created_ms / {DAY} AS day, customer_number AS owner,
    {SUMMED_AS(operation, movement_minor > 0)} AS summed_as, 1 AS entries, movement_minor AS movement
  FROM ledger_transaction WHERE sequence IS NOT NULL
    AND number <= (SELECT number FROM ledger_summed)
  UNION ALL SELECT kept.day, coalesce(customer.number, 0), {SUMMED_AS(kept.operation, kept.raised)},
    -kept.entries, -kept.movement_minor
  FROM ledger_sum AS kept LEFT JOIN customer ON customer.id = kept.customer_id) AS entry
GROUP BY day, owner, summed_as HAVING sum(entries) <> 0 OR sum(movement) <> 0 LIMIT 1
-- define SUMMED_AS(operation, raised)
2 * (CASE {operation} WHEN 'DEBIT' THEN 0 WHEN 'CREDIT' THEN 1 ELSE 2 END) + ({raised})
