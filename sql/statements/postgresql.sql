-- The SQL by which the ledger is read in PostgreSQL (shared.sql has the rest).

-- define WHOSE
player.customer_id, player.id, player.currency, currency.exponent
-- define OWN_GAME
ledger_transaction.game_id
-- define OWN_PROVIDER
provider.id
-- define OWN_SANDBOX
{SANDBOX}
-- define OWN_LAUNCH
ledger_transaction.launch_id
-- define ROW_JOINS
{JOINS}
-- define INNER
JOIN
-- define BYTES
COLLATE "C"
-- define LAST
last.player_number = player.number AND last.sequence = (SELECT max(entry.sequence)
  FROM ledger_transaction AS entry WHERE entry.player_number = player.number)

-- define JOINS
JOIN player ON player.number = ledger_transaction.player_number
JOIN currency ON currency.code = player.currency
LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number

-- The reference of an entry: a CREDIT leads to its DEBIT, a ROLLBACK to its target, and to the DEBIT
-- of that. Entries alone, which were there before: what is declined may come later.
-- define REFERRED(as, from)
LEFT JOIN ledger_transaction AS {as} ON {as}.sequence IS NOT NULL
  AND {as}.owner_number = ledger_transaction.owner_number
  AND {as}.transaction_id = {from}.reference
-- define ORIGIN
{JOINS} {REFERRED(one, ledger_transaction)} {REFERRED(two, one)}
LEFT JOIN game ON game.id = coalesce(ledger_transaction.game_id, one.game_id, two.game_id)
-- The same for few entries, where PostgreSQL cannot know that they are few. With OFFSET 0 it looks each row
-- up by its key. Else, without statistics, as after pg_upgrade, it may read and sort the whole ledger.
-- define LOOKED_UP(table, key, value)
LEFT JOIN LATERAL (SELECT * FROM {table} WHERE {table}.{key} = {value} OFFSET 0) AS {table} ON true
-- define REFERRED_BY_KEY(as, from, wanted)
LEFT JOIN LATERAL (SELECT * FROM ledger_transaction AS entry WHERE entry.sequence IS NOT NULL
  AND entry.owner_number = ledger_transaction.owner_number
  AND entry.transaction_id = {from}.reference AND {{wanted}} OFFSET 0) AS {as} ON true
-- define ORIGIN_BY_KEY(wanted)
{LOOKED_UP(player, number, ledger_transaction.player_number)}
{LOOKED_UP(currency, code, player.currency)}
{LOOKED_UP(provider, number, -ledger_transaction.owner_number)}
{REFERRED_BY_KEY(one, ledger_transaction, {wanted})} {REFERRED_BY_KEY(two, one, ALWAYS)}
LEFT JOIN LATERAL (SELECT * FROM game
  WHERE game.id = coalesce(ledger_transaction.game_id, one.game_id, two.game_id) OFFSET 0) AS game
  ON true
-- define ALWAYS
true
-- An entry that says its own game and round needs no other, unless it rolls back.
-- define NOT_ITS_OWN
(ledger_transaction.operation = 'ROLLBACK' OR ledger_transaction.game_id IS NULL
  OR ledger_transaction.round_id IS NULL)
-- define ORIGIN_OF_SUM
{ORIGIN_BY_KEY(NOT_ITS_OWN)}
-- define GAME
coalesce(ledger_transaction.game_id, one.game_id, two.game_id, '')
-- define ROUND
coalesce(ledger_transaction.round_id, one.round_id, two.round_id, '')
-- define MOVED
(SELECT past ->> 1 FROM jsonb_array_elements(game.moved::jsonb) AS past
  WHERE CAST(past ->> 0 AS bigint) > ledger_transaction.created_ms
  ORDER BY CAST(past ->> 0 AS bigint) LIMIT 1)
-- define STOPPED_SUM(value)
CAST(least(sum({value}), 4611686018427387904) AS bigint)
-- define LAST_NUMBER
(SELECT coalesce(pg_sequence_last_value('ledger_number'), 0) + 511)
-- define SETTLED
one.number
-- define FROM_THEN_ON
ledger_transaction {ORIGIN} WHERE true
-- define FROM_THEN_ON_OF_PLAYER
ledger_transaction {ORIGIN_BY_KEY(ALWAYS)}
WHERE ledger_transaction.player_number = (SELECT number FROM player WHERE id = $6)
-- define SUMMED
ledger_transaction
-- define SUMMED_WHERE
true
-- Without the upper end PostgreSQL takes these for a third of all, and reads all of the day.
-- define SUMMED_SINCE_KEPT
ledger_transaction.number > (SELECT number FROM ledger_summed)
AND ledger_transaction.number <= {LAST_NUMBER}

-- Of the entries after $1, up to $2: a row for each sum.
-- field summed
SELECT day, customer_id, currency, provider, game, operation, kind, transfer, raised,
  CAST(sum(entries) AS bigint), CAST(sum(movement) AS bigint)
FROM ({KEPT_ENTRIES(ORIGIN_OF_SUM)} AND ledger_transaction.number > $1
  AND ledger_transaction.number <= $2) AS entry
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9

-- define ENTRIES(origin)
SELECT {COLUMNS} FROM ledger_transaction {{origin}} WHERE ledger_transaction.sequence IS NOT NULL
-- define BY_PLAYER
ORDER BY ledger_transaction.player_number, ledger_transaction.sequence
-- define OF_PLAYER
AND ledger_transaction.player_number = (SELECT number FROM player WHERE player.id = $1)
AND ledger_transaction.sequence >= $2 AND ledger_transaction.sequence < $3
-- define OF_CUSTOMER
AND ($1 = '' OR player.customer_id = $1)
-- In parts, an hour of a day each, so that little has to be sorted at a time.
-- define PARTS
(SELECT span.from_ms + at * span.part_ms AS from_ms,
  CASE WHEN at < 23 THEN span.from_ms + (at + 1) * span.part_ms ELSE span.before_ms END AS before_ms
  FROM (SELECT CAST($1 AS bigint) AS from_ms, CAST($2 AS bigint) AS before_ms,
    (CAST($2 AS bigint) - CAST($1 AS bigint)) / 24 AS part_ms) AS span,
  generate_series(0, 23) AS at) AS part
-- define ENTERED(origin, condition)
SELECT entry.* FROM {PARTS} CROSS JOIN LATERAL (SELECT {COLUMNS}
  FROM ledger_transaction {{origin}} WHERE ledger_transaction.sequence IS NOT NULL
  AND ledger_transaction.created_ms >= part.from_ms
  AND ledger_transaction.created_ms < part.before_ms
  AND ($3 = '' OR player.customer_id = $3) {{condition}}
  ORDER BY ledger_transaction.created_ms, ledger_transaction.number OFFSET 0) AS entry

-- field entered
{ENTERED(JOINS, NOTHING)}
-- field entered_of_report
{ENTERED(ORIGIN, OF_REPORT)}
-- field entries_of_player
{ENTRIES(JOINS)} {OF_PLAYER} {BY_PLAYER}
-- field entries_of_player_and_provider
{ENTRIES(ORIGIN)} {OF_PLAYER} {OF_PROVIDER_4} {BY_PLAYER}
-- field entries
{ENTRIES(JOINS)} {OF_CUSTOMER} {BY_PLAYER}
-- field entries_of_provider
{ENTRIES(ORIGIN)} {OF_CUSTOMER} {OF_PROVIDER_2} {BY_PLAYER}

-- Of a player, all from the first that is of the time on: clocks of instances differ, and go back,
-- so an entry may seem older than one that it follows.
-- define FIRSTS
(SELECT since.player_number, min(since.sequence) AS sequence FROM ledger_transaction AS since
  WHERE since.created_ms >= $1 AND since.sequence IS NOT NULL GROUP BY since.player_number)
-- define PLAYERS_SINCE
SELECT player_number FROM {FIRSTS} AS first

-- field chained
SELECT {COLUMNS_WITH(UNMARKED)}, lag(ledger_transaction.sequence) OVER whose,
  lag(ledger_transaction.balance_minor) OVER whose, lag(ledger_transaction.hash) OVER whose, 0
FROM ledger_transaction {JOINS} WHERE ledger_transaction.sequence IS NOT NULL
WINDOW whose AS (PARTITION BY ledger_transaction.player_number
  ORDER BY ledger_transaction.sequence) {BY_PLAYER}
-- field chained_since
SELECT {COLUMNS_WITH(UNMARKED)}, before.sequence, before.balance_minor, before.hash,
  (ledger_transaction.sequence = first.sequence)::int
FROM {FIRSTS} AS first
JOIN ledger_transaction ON ledger_transaction.player_number = first.player_number
  AND ledger_transaction.sequence >= first.sequence {JOINS}
LEFT JOIN ledger_transaction AS before
  ON before.player_number = ledger_transaction.player_number
  AND before.sequence = ledger_transaction.sequence - 1 {BY_PLAYER}

-- field newest
SELECT {COLUMNS}, {ACCOUNT_COLUMNS}, previous.hash, ledger_transaction.number
FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512) AS ledger_transaction
CROSS JOIN LATERAL (SELECT * FROM player
  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player
JOIN currency ON currency.code = player.currency
LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number
LEFT JOIN LATERAL (SELECT * FROM ledger_account
  WHERE ledger_account.player_number = ledger_transaction.player_number LIMIT 1)
  AS ledger_account ON true
LEFT JOIN LATERAL (SELECT entry.hash FROM ledger_transaction AS entry
  WHERE entry.player_number = ledger_transaction.player_number
  AND entry.sequence = ledger_transaction.sequence - 1 LIMIT 1) AS previous ON true
WHERE ledger_transaction.sequence IS NOT NULL

-- field tail
SELECT {COLUMNS}, ledger_transaction.number
FROM (SELECT * FROM ledger_transaction WHERE number >= $1 AND number <= $2
  AND sequence IS NOT NULL ORDER BY number LIMIT 1001) AS ledger_transaction
CROSS JOIN LATERAL (SELECT * FROM player
  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player
JOIN currency ON currency.code = player.currency
LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number
ORDER BY ledger_transaction.number

-- An own entry of the customer says so by its owner; of a provider's, the player has to be read.
-- Last: whether entries may lie beyond those that the page looks at.
-- field tail_of_customer
WITH span AS MATERIALIZED (SELECT * FROM ledger_transaction WHERE number >= $1 AND number <= $2
  AND sequence IS NOT NULL ORDER BY number LIMIT 2001)
SELECT {COLUMNS}, ledger_transaction.number, ((SELECT count(*) FROM span) > 2000)::int
FROM (SELECT * FROM span WHERE owner_number < 0
    OR owner_number = (SELECT number FROM customer WHERE id = $3)
    OR number = $1 OR number = (SELECT max(number) FROM span) ORDER BY number) AS ledger_transaction
CROSS JOIN LATERAL (SELECT * FROM player
  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player
JOIN currency ON currency.code = player.currency
LEFT JOIN provider ON provider.number = -ledger_transaction.owner_number
WHERE player.customer_id = $3 OR ledger_transaction.number = $1
  OR ledger_transaction.number = (SELECT max(number) FROM span)
ORDER BY ledger_transaction.number LIMIT $4

-- NULL: none was taken yet.
-- field last_number
SELECT pg_sequence_last_value('ledger_number'::regclass)
-- Of the transactions that $1 names or of all (''), those that may still write entries.
-- field open_batches
SELECT coalesce(string_agg(DISTINCT virtualtransaction, ' '), '') FROM pg_catalog.pg_locks
WHERE locktype = 'relation' AND mode = 'RowShareLock' AND granted
AND relation = 'ledger_account'::regclass AND database =
  (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
AND ($1 = '' OR virtualtransaction = ANY (string_to_array($1, ' ')))

-- ---- look-ups: LATERAL with LIMIT, see src/stores/platform/postgres/ledger_read.c ----

-- A rolled-back id has a row of ledger_transaction: a transaction's, or one that holds its key. So
-- one look-up is enough for an unused id. The count of standing credits stops at one more than a
-- batch could take away (LEDGER_BATCH_MAX + 1).
-- define CREDITS
SELECT credit.number, credit.transaction_id FROM ledger_transaction AS credit
WHERE credit.settles = ledger_transaction.number
UNION ALL SELECT credit.number, credit.transaction_id FROM ledger_transaction AS credit
WHERE credit.owner_number = ledger_transaction.owner_number
  AND credit.reference = ledger_transaction.transaction_id AND credit.operation = 'CREDIT'
  AND credit.outcome = 'applied' AND credit.reference IS NOT NULL AND credit.settles IS NULL
-- define STANDING
(SELECT number FROM ({CREDITS}) AS credit WHERE NOT EXISTS (SELECT FROM ledger_rollback AS undone
  WHERE undone.owner_number = ledger_transaction.owner_number
  AND undone.target_id = credit.transaction_id OFFSET 0) LIMIT 257) AS standing
-- define SETTLED_BY
coalesce((SELECT first.transaction_id FROM ledger_transaction AS first
  WHERE first.number = (SELECT min(number) FROM {STANDING}) LIMIT 1), '')
-- define NOT_ASKED
''
-- define FACTS(asked, sandbox, settled_by)
SELECT asked.at, {COLUMNS_WITH({sandbox})}, rollback.player_id,
  CASE WHEN asked.counts = 1 AND ledger_transaction.operation = 'DEBIT'
    AND ledger_transaction.outcome = 'applied' THEN (SELECT count(*) FROM {STANDING}) ELSE 0 END,
  ledger_transaction.number, rollback.transaction_id, {{settled_by}}
FROM ({{asked}}) AS asked
CROSS JOIN LATERAL (SELECT * FROM ledger_transaction AS kept
  WHERE kept.owner_number = asked.owner_number AND kept.transaction_id = asked.id
  LIMIT 2) AS ledger_transaction
LEFT JOIN LATERAL (SELECT * FROM player
  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player ON true
LEFT JOIN LATERAL (SELECT * FROM currency
  WHERE currency.code = player.currency LIMIT 1) AS currency ON true
LEFT JOIN LATERAL (SELECT id FROM provider WHERE ledger_transaction.owner_number < 0
  AND provider.number = -ledger_transaction.owner_number LIMIT 1) AS provider ON true
LEFT JOIN LATERAL (SELECT player.id AS player_id, (SELECT undo.transaction_id
    FROM ledger_transaction AS undo WHERE undo.number = ledger_rollback.transaction_number LIMIT 1)
    AS transaction_id FROM ledger_rollback
  JOIN player ON player.number = ledger_rollback.player_number
  WHERE ledger_rollback.owner_number = asked.owner_number
  AND ledger_rollback.target_id = asked.id LIMIT 1) AS rollback ON true

-- define BY_ARRAYS
SELECT unnest($1::bigint[]) AS owner_number, unnest($2::text[]) AS id,
  unnest($3::bigint[]) AS counts, generate_subscripts($2::text[], 1) AS at
-- define BY_NAMES
SELECT owner.number AS owner_number, $2::text AS id, 1 AS counts, 1 AS at
FROM (SELECT number FROM customer WHERE id = $1
  UNION ALL SELECT -number FROM provider WHERE id = $1) AS owner

-- Owners' numbers, the ids, and 1 where standing credits are to be counted and else 0.
-- field facts
{FACTS(BY_ARRAYS, UNMARKED, NOT_ASKED)}
-- Of the owner $1, the id $2.
-- field fact
{FACTS(BY_NAMES, OWN_SANDBOX, SETTLED_BY)}

-- field players_of_ids
SELECT account.* FROM unnest($1::text[]) AS asked (id)
CROSS JOIN LATERAL (SELECT {ACCOUNT_COLUMNS}, player.number,
    customer.number AS customer_number FROM player
  JOIN customer ON customer.id = player.customer_id
  JOIN currency ON currency.code = player.currency
  LEFT JOIN ledger_account ON ledger_account.player_number = player.number
  WHERE player.id = asked.id LIMIT 1) AS account

-- field accounts_of_ids
SELECT asked.at, account.* FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, at)
CROSS JOIN LATERAL (SELECT {ACCOUNT_COLUMNS} FROM player
  JOIN currency ON currency.code = player.currency
  LEFT JOIN ledger_account ON ledger_account.player_number = player.number
  WHERE player.id = asked.id LIMIT 1) AS account

-- PostgreSQL leaves a customer that is = $1 out of the order, and might then walk through the
-- players of all.
-- define OF_ONE
player.customer_id BETWEEN $1 AND $1
-- define ORDER_OF_ONE
player.customer_id DESC,

-- field listed
SELECT account.* FROM unnest(string_to_array($1, ',')) WITH ORDINALITY AS asked (id, at)
CROSS JOIN LATERAL (SELECT {ACCOUNT_COLUMNS}, (SELECT last.created_ms
    FROM ledger_transaction AS last WHERE last.player_number = player.number
    AND last.sequence = ledger_account.sequence) FROM player
  JOIN currency ON currency.code = player.currency
  LEFT JOIN ledger_account ON ledger_account.player_number = player.number
  WHERE player.id = asked.id LIMIT 1) AS account ORDER BY asked.at

-- ---- checks ----

-- check it is not what was opened
SELECT 'player ' || player.id FROM player
LEFT JOIN player_opened AS opened ON opened.player_number = player.number
LEFT JOIN currency ON currency.code = player.currency
WHERE (opened.id, opened.customer_id, opened.reference, opened.currency, opened.exponent,
  opened.created_ms) IS DISTINCT FROM (player.id, player.customer_id, player.reference,
  player.currency, currency.exponent, player.created_ms) LIMIT 1

-- check it is not of its customer's player
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
LEFT JOIN player ON player.number = t.player_number
LEFT JOIN customer ON customer.id = player.customer_id
WHERE customer.number IS NULL
OR (t.owner_number > 0 AND customer.number <> t.owner_number) LIMIT 1

-- check there is no such provider
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.owner_number <= 0
AND NOT EXISTS (SELECT FROM provider WHERE provider.number = -t.owner_number) LIMIT 1

-- check its player has no account
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.sequence IS NOT NULL AND NOT EXISTS (SELECT FROM ledger_account AS account
  WHERE account.player_number = t.player_number) LIMIT 1

-- check its account is not of its last entry
SELECT 'player number ' || account.player_number FROM ledger_account AS account
WHERE NOT EXISTS (SELECT FROM ledger_transaction AS last
  WHERE last.player_number = account.player_number AND last.sequence = account.sequence) LIMIT 1

-- check it refers to no debit that it could settle
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.operation = 'CREDIT' AND t.outcome = 'applied' AND t.reference IS NOT NULL
AND NOT EXISTS (SELECT FROM ledger_transaction AS debit
  WHERE debit.owner_number = t.owner_number AND debit.transaction_id = t.reference
  AND debit.player_number = t.player_number AND debit.operation = 'DEBIT'
  AND debit.outcome = 'applied' AND NOT debit.late
  AND debit.number = coalesce(t.settles, debit.number)) LIMIT 1

-- check it is not marked as having rolled back its reference
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.operation = 'ROLLBACK' AND t.sequence IS NOT NULL
AND NOT EXISTS (SELECT FROM ledger_rollback AS mark
  WHERE mark.owner_number = t.owner_number AND mark.target_id = t.reference
  AND mark.transaction_number = t.number) LIMIT 1

-- check it is marked as rolled back by what is not its ROLLBACK
SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark
WHERE NOT EXISTS (SELECT FROM ledger_transaction AS undo
  WHERE undo.number = mark.transaction_number AND undo.operation = 'ROLLBACK'
  AND undo.sequence IS NOT NULL AND undo.owner_number = mark.owner_number
  AND undo.player_number = mark.player_number AND undo.reference = mark.target_id) LIMIT 1

-- check it is rolled back and nothing holds its key
SELECT 'transaction id ' || mark.target_id FROM ledger_rollback AS mark
WHERE NOT EXISTS (SELECT FROM ledger_transaction AS target
  WHERE target.owner_number = mark.owner_number AND target.transaction_id = mark.target_id
  AND target.player_number = mark.player_number AND NOT target.late) LIMIT 1

-- The key follows its ROLLBACK by LEDGER_BATCH_MAX, and has the same time.
-- check its key is held for no ROLLBACK
SELECT 'transaction id ' || key.transaction_id FROM ledger_transaction AS key
WHERE key.operation IS NULL AND NOT EXISTS (SELECT FROM ledger_rollback AS mark
  JOIN ledger_transaction AS undo ON undo.number = mark.transaction_number
  WHERE mark.owner_number = key.owner_number AND mark.target_id = key.transaction_id
  AND mark.player_number = key.player_number AND undo.created_ms = key.created_ms
  AND undo.number = key.number - 256 AND NOT key.late) LIMIT 1

-- check it is late for an id that nothing held
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.late AND NOT EXISTS (SELECT FROM ledger_transaction AS key
  WHERE key.owner_number = t.owner_number AND key.transaction_id = t.transaction_id
  AND key.operation IS NULL) LIMIT 1

-- check it is declined and not chained
SELECT 'transaction ' || t.transaction_id FROM ledger_transaction AS t
WHERE t.sequence IS NULL AND t.operation IS NOT NULL
AND NOT EXISTS (SELECT FROM ledger_decline AS chained
  WHERE chained.transaction_number = t.number AND chained.player_number = t.player_number) LIMIT 1

-- check there is no such customer, or currency
SELECT 'the clearing account of customer number ' || clearing.customer_number
FROM ledger_clearing AS clearing WHERE NOT EXISTS (SELECT FROM customer
  WHERE customer.number = clearing.customer_number) OR NOT EXISTS (SELECT FROM currency
  WHERE currency.code = clearing.currency) LIMIT 1

-- check its kept sums are not those of its entries
SELECT 'day ' || day || ' of customer ' || customer_id
FROM ({KEPT_ENTRIES(ORIGIN)} AND ledger_transaction.number <= (SELECT number FROM ledger_summed)
  UNION ALL SELECT day, customer_id, currency, provider, game, operation, kind, transfer, raised,
    -entries, -movement_minor FROM ledger_sum) AS entry
GROUP BY day, customer_id, currency, provider, game, operation, kind, transfer, raised
HAVING sum(entries) <> 0 OR sum(movement) <> 0 LIMIT 1
