-- The SQL by which the ledger is read, as far as both engines share it (tools/embed_statements.py
-- has the form of these files). An engine's file defines the parts in which its schema differs:
--
--   WHOSE, OWN_SANDBOX                          columns of a row of ledger_transaction: the player's
--                                               four, and whether its customer is a sandbox
--   OWN_GAME, OWN_PROVIDER, OWN_LAUNCH          three more with an expression of their own
--   ROW_JOINS                                   the joins that these need
--   GAME, ROUND, ORIGIN                         those that an entry belongs to, and their joins
--   ORIGIN_OF_SUM                               these joins for a sum of few entries
--   MOVED                                       the provider that a game had at the entry's time
--   INNER                                       its word for a join in the order of the text
--   LAST                                        how an account names its last entry
--   BYTES                                       its word for the order of bytes
--   SUMMED, SUMMED_WHERE                        where entries of a time are found
--   SUMMED_SINCE_KEPT                           likewise where $8 is 1
--   FROM_THEN_ON                                the entries from $1 on
--   FROM_THEN_ON_OF_PLAYER                      those of the player $6
--   LAST_NUMBER                                 that no entry is above
--   STOPPED_SUM                                 a sum that is at most 2^62
--   SETTLED                                     the number of the DEBIT that a CREDIT refers to

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

-- define COLUMNS_WITH(sandbox)
{WHOSE}, ledger_transaction.transaction_id, ledger_transaction.reference, {OWN_GAME},
ledger_transaction.round_id, ledger_transaction.operation, ledger_transaction.outcome,
ledger_transaction.amount_minor, ledger_transaction.created_ms, ledger_transaction.sequence,
ledger_transaction.movement_minor, ledger_transaction.balance_minor, ledger_transaction.hash,
{OWN_PROVIDER}, {OWN_LAUNCH}, ledger_transaction.kind, ledger_transaction.round_ended,
{{sandbox}}
-- define COLUMNS
{COLUMNS_WITH(OWN_SANDBOX)}
-- Where nothing is shown to people, nothing is looked up.
-- define UNMARKED
0

-- ---- rows ----

-- Whether a player is of a sandbox customer. That never changes once the customer has a player.
-- define SANDBOX
coalesce((SELECT 1 FROM customer WHERE customer.id = player.customer_id AND customer.sandbox), 0)

-- Whose entry it is stays so, whatever becomes of the game: reports sum by it. Without a game there is
-- nothing to look up, which costs more than all the rest of a row.
-- define PROVIDER
coalesce({OWN_PROVIDER}, CASE WHEN game.id IS NULL THEN NULL
  WHEN ledger_transaction.created_ms >= game.since_ms THEN game.provider_id ELSE {MOVED} END, '')

-- define NOTHING

-- define OF_PROVIDER_4
AND {PROVIDER} = $4
-- define OF_PROVIDER_2
AND {PROVIDER} = $2

-- Of the figures of a report, the one that the entry is a part of. What rolls back has that of what
-- it rolled back.
-- define ROLLED_BACK_OR_OWN
CASE WHEN ledger_transaction.operation = 'ROLLBACK' THEN one.operation
  ELSE ledger_transaction.operation END
-- define FIGURE
CASE WHEN {TRANSFER} = 1
  THEN CASE WHEN {ROLLED_BACK_OR_OWN} = 'CREDIT' THEN 'paid_in' ELSE 'paid_out' END
  WHEN {ROLLED_BACK_OR_OWN} = 'DEBIT' THEN 'stake'
  ELSE coalesce(nullif({KIND}, ''), 'win') END
-- define OF_REPORT
AND ($4 = 1 OR {PROVIDER} = $5) AND ($6 = 1 OR {GAME} = $7) AND ($8 = '' OR {FIGURE} = $8)
AND ($9 = 0 OR $3 <> '' OR {SANDBOX} = 0)

-- field transactions
SELECT {COLUMNS_WITH(UNMARKED)} FROM ledger_transaction {ROW_JOINS}
WHERE ledger_transaction.operation IS NOT NULL ORDER BY ledger_transaction.number

-- field declines
SELECT {COLUMNS_WITH(UNMARKED)}, ledger_decline.position, ledger_decline.hash, before.hash
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
-- A sum of amounts stops at 2^62, so that one customer's cannot end the report of all.
-- define SUM(transfer, operation, value)
, {STOPPED_SUM(CASE WHEN transfer = {transfer} AND operation = {operation} THEN {value} ELSE 0 END)}
-- define SUMS(transfer)
{SUM({transfer}, 'DEBIT', entries)}
{SUM({transfer}, 'CREDIT', entries)}
{SUM({transfer}, 'ROLLBACK', entries)}
{SUM({transfer}, 'DEBIT', -movement)}
{SUM({transfer}, 'CREDIT', movement)}
{SUM({transfer}, 'ROLLBACK' AND movement > 0, movement)}
{SUM({transfer}, 'ROLLBACK' AND movement < 0, -movement)}

-- Of the CREDITs of a kind: how many, how much, and how much of it was rolled back.
-- define OF_KIND(kind, value)
, {STOPPED_SUM(CASE WHEN kind = {kind} AND {value} ELSE 0 END)}
-- define KIND_SUMS(kind)
{OF_KIND({kind}, operation = 'CREDIT' THEN entries)}
{OF_KIND({kind}, operation = 'CREDIT' THEN movement)}
{OF_KIND({kind}, operation = 'ROLLBACK' THEN -movement)}

-- define TRANSFER
CASE WHEN {PROVIDER} = '' AND {GAME} = '' AND {ROUND} = '' THEN 1 ELSE 0 END
-- define KIND
CASE WHEN ledger_transaction.operation = 'ROLLBACK' THEN one.kind ELSE ledger_transaction.kind END

-- Where $8 is 1, the entries that are in ledger_sum already come from there.
-- define SUMS_OF(where, origin)
SELECT customer_id, currency, exponent, day, provider, game, round {SUMS(0)} {SUMS(1)}
  {KIND_SUMS('promo')} {KIND_SUMS('jackpot')} {KIND_SUMS('adjustment')},
  (SELECT name FROM customer WHERE customer.id {BYTES} = entry.customer_id),
  (SELECT CASE WHEN sandbox THEN 1 ELSE 0 END FROM customer WHERE customer.id {BYTES} = entry.customer_id)
FROM (SELECT player.customer_id {BYTES} AS customer_id, player.currency {BYTES} AS currency,
    currency.exponent AS exponent,
    CASE WHEN $5 = 1 THEN ledger_transaction.created_ms / {DAY} ELSE 0 END AS day,
    CASE WHEN $6 = 1 THEN {PROVIDER} ELSE '' END {BYTES} AS provider,
    CASE WHEN $6 = 1 THEN {GAME} ELSE '' END {BYTES} AS game,
    CASE WHEN $7 = 1 THEN {ROUND} ELSE '' END {BYTES} AS round,
    {TRANSFER} AS transfer,
    ledger_transaction.operation AS operation, ledger_transaction.movement_minor AS movement,
    {KIND} AS kind, 1 AS entries
  FROM {SUMMED} {{origin}} WHERE {{where}} AND ledger_transaction.sequence IS NOT NULL
    AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2
    AND ($3 = '' OR player.customer_id = $3) AND ($4 = '' OR {PROVIDER} = $4)
  UNION ALL SELECT kept.customer_id, kept.currency, currency.exponent,
    CASE WHEN $5 = 1 THEN kept.day ELSE 0 END, CASE WHEN $6 = 1 THEN kept.provider ELSE '' END,
    CASE WHEN $6 = 1 THEN kept.game ELSE '' END, '', kept.transfer, kept.operation,
    kept.movement_minor, kept.kind, kept.entries
  FROM ledger_sum AS kept JOIN currency ON currency.code = kept.currency
  WHERE $8 = 1 AND kept.day BETWEEN $1 / {DAY} AND ($2 - 1) / {DAY}
    AND ($3 = '' OR kept.customer_id = $3) AND ($4 = '' OR kept.provider = $4)) AS entry
GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 4, 5, 6, 7
-- field sums
{SUMS_OF(SUMMED_WHERE, ORIGIN)}
-- field sums_beside_kept
{SUMS_OF(SUMMED_SINCE_KEPT, ORIGIN_OF_SUM)}

-- What entries are, as rows of ledger_sum.
-- define KEPT_ENTRIES(origin)
SELECT ledger_transaction.created_ms / {DAY} AS day, player.customer_id AS customer_id,
  player.currency AS currency, {PROVIDER} AS provider, {GAME} AS game,
  ledger_transaction.operation AS operation, coalesce({KIND}, '') AS kind, {TRANSFER} AS transfer,
  CASE WHEN ledger_transaction.movement_minor > 0 THEN 1 ELSE 0 END AS raised, 1 AS entries,
  ledger_transaction.movement_minor AS movement
FROM ledger_transaction {{origin}} WHERE ledger_transaction.sequence IS NOT NULL

-- Adds such a row to what is kept.
-- field keep_sum
INSERT INTO ledger_sum (day, customer_id, currency, provider, game, operation, kind, transfer,
  raised, entries, movement_minor) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (day, customer_id, currency, provider, game, operation, kind, transfer, raised)
DO UPDATE SET entries = ledger_sum.entries + excluded.entries,
  movement_minor = ledger_sum.movement_minor + excluded.movement_minor

-- ---- verifications ----

-- field verifications
SELECT scope, started_ms, ended_ms, since_ms, sound, entries, players, reason
FROM ledger_verification
-- field put_verification
INSERT INTO ledger_verification (scope, started_ms, ended_ms, since_ms, sound, entries, players,
  reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (scope) DO UPDATE SET started_ms = excluded.started_ms, ended_ms = excluded.ended_ms,
  since_ms = excluded.since_ms, sound = excluded.sound, entries = excluded.entries,
  players = excluded.players, reason = excluded.reason
-- field delete_verification
DELETE FROM ledger_verification WHERE scope = $1 AND ended_ms <= $2

-- ---- rounds ----

-- An entry from $1 on of a round, of the customer $3 or all (''), of the provider $4 or all, and of
-- the player $6 or all.
-- `target` is the transaction that an entry says something of: a ROLLBACK of another, else itself.
-- `bet` is the DEBIT of it: its own, or the one that it settles or settled; a CREDIT without one is
-- its own.
-- define ROUND_ENTRIES(found)
SELECT ledger_transaction.player_number AS player_number, {PROVIDER} AS provider, {ROUND} AS round,
  {GAME} AS game, ledger_transaction.created_ms AS at,
  ledger_transaction.sequence AS sequence, ledger_transaction.number AS number,
  ledger_transaction.operation AS operation, ledger_transaction.movement_minor AS movement,
  coalesce(ledger_transaction.round_ended, 0) AS ended,
  CASE ledger_transaction.operation WHEN 'ROLLBACK' THEN coalesce(one.number,
    ledger_transaction.number) ELSE ledger_transaction.number END AS target,
  CASE ledger_transaction.operation WHEN 'ROLLBACK' THEN coalesce(two.number, one.number,
    ledger_transaction.number) WHEN 'CREDIT' THEN coalesce({SETTLED}, ledger_transaction.number)
    ELSE ledger_transaction.number END AS bet
FROM {{found}} AND ledger_transaction.sequence IS NOT NULL
  AND ledger_transaction.created_ms >= $1 AND {ROUND} <> ''
  AND ($3 = '' OR player.customer_id = $3) AND ($4 = '' OR {PROVIDER} = $4)
  AND ($6 = '' OR player.id = $6)

-- The targets that are rolled back, and the bets on which CREDITs stand. Two joins with these cost
-- less than half of what window functions over all entries cost, which sort them twice.
-- define FATES_OF_ALL
SELECT entry.*, CASE WHEN undone.target IS NULL THEN 0 ELSE 1 END AS undone,
  CASE WHEN settled.bet IS NULL THEN 0 ELSE 1 END AS settled
FROM entry LEFT JOIN undone ON undone.target = entry.target
LEFT JOIN settled ON settled.bet = entry.bet
-- The same where PostgreSQL expects few entries and there may be many: it would join all with all. These
-- it looks up in a hash, whatever it expects.
-- define FATES_OF_PLAYER
WITH fate AS MATERIALIZED (SELECT entry.*,
  CASE WHEN target IN (SELECT target FROM undone) THEN 1 ELSE 0 END AS undone,
  CASE WHEN bet IN (SELECT bet FROM settled) THEN 1 ELSE 0 END AS settled FROM entry)
SELECT * FROM fate

-- An end that is rolled back is none.
-- define ENDS
ended = 1 AND (undone = 0 OR operation = 'ROLLBACK')
-- define COUNT(condition)
CAST(sum(CASE WHEN {condition} THEN 1 ELSE 0 END) AS bigint)
-- define MINOR(condition)
CAST(sum(CASE WHEN {condition} AND undone = 0 THEN abs(movement) ELSE 0 END) AS bigint)
-- define LATEST(condition)
coalesce(max(CASE WHEN {condition} AND undone = 0 THEN sequence END), 0)

-- An end closes its round for the bets before it. What came of bets before $1, as wins, is left out: a
-- round is there with a bet, or with a CREDIT that refers to none or to one of another round. Its game is
-- that of a bet, if one names a game.
-- define ROUNDS(fates)
SELECT player_number, provider,
  coalesce(max(CASE operation WHEN 'DEBIT' THEN nullif(game, '') END), max(game)) AS game,
  round, min(at) AS began, max(at) AS last,
  coalesce(min(CASE WHEN {ENDS} THEN at END), 0) AS ended_at,
  CAST(sum(CASE WHEN {ENDS} THEN 1 ELSE 0 END) AS bigint) AS ends,
  {COUNT(operation = 'DEBIT')} AS bets, {COUNT(operation = 'CREDIT')} AS wins,
  {MINOR(operation = 'DEBIT')} AS stake, {MINOR(operation = 'CREDIT')} AS win,
  {LATEST(operation = 'DEBIT')} AS last_bet,
  {LATEST(operation = 'DEBIT' AND settled = 0)} AS last_open,
  coalesce(min(CASE WHEN {ENDS} THEN sequence END), 0) AS first_end,
  coalesce(max(CASE WHEN {ENDS} THEN sequence END), 0) AS last_end
FROM ({{fates}}) AS fate
GROUP BY player_number, round, provider
HAVING max(CASE WHEN operation <> 'ROLLBACK' AND bet >= (SELECT min(number) FROM entry)
  THEN 1 ELSE 0 END) = 1

-- Those that began before $2; with $5 = 1 those that are open. The oldest first; with $7 = 1 the
-- newest. Rounds are made of numbers of players; names are read for those that are shown.
-- define ROUNDS_OF(found, fates)
WITH entry AS ({ROUND_ENTRIES({found})}),
undone AS (SELECT DISTINCT target FROM entry WHERE operation = 'ROLLBACK'),
settled AS (SELECT bet FROM entry
  WHERE operation = 'CREDIT' OR (operation = 'ROLLBACK' AND target <> bet)
  GROUP BY bet HAVING sum(CASE operation WHEN 'CREDIT' THEN 1 ELSE -1 END) <> 0)
SELECT player.id, player.customer_id, player.reference, player.currency, currency.exponent,
  provider, game, round.round, began, last, ended_at, ends, bets, wins, stake, win,
  CASE WHEN first_end > 0 AND last_bet > first_end THEN 1 ELSE 0 END,
  CASE WHEN last_open > last_end THEN 0 WHEN ends > 0 THEN 1 ELSE 2 END, {SANDBOX}
FROM ({ROUNDS({fates})}) AS round {INNER} player ON player.number = round.player_number
{INNER} currency ON currency.code = player.currency
WHERE began < $2 AND ($5 = 0 OR last_open > last_end)
ORDER BY CASE WHEN $7 = 1 THEN -began ELSE began END, player.id {BYTES}, provider {BYTES},
  round.round {BYTES}
-- field rounds
{ROUNDS_OF(FROM_THEN_ON, FATES_OF_ALL)}
-- field rounds_of_player
{ROUNDS_OF(FROM_THEN_ON_OF_PLAYER, FATES_OF_PLAYER)}

-- ---- checks: what is wrong, and a statement that names the first row of which that holds ----

-- Numbers may be taken and given back, so the end is the next one's in PostgreSQL.
-- check its kept sums are ahead of its entries
SELECT 'number ' || number FROM ledger_summed WHERE number > {LAST_NUMBER} LIMIT 1

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

-- A customer without such a row is older than sandboxes, and is none.
-- check it is a sandbox, or none, and the audit trail says otherwise
SELECT 'customer ' || customer.id FROM customer
LEFT JOIN (SELECT object, max(number) AS number FROM audit_trail
  WHERE kind = 'customer' AND after LIKE '%"sandbox":%' GROUP BY object) AS newest
  ON newest.object = customer.id
LEFT JOIN audit_trail AS said ON said.number = newest.number
WHERE CASE WHEN customer.sandbox THEN 1 ELSE 0 END
  <> CASE WHEN said.after LIKE '%"sandbox":true%' THEN 1 ELSE 0 END LIMIT 1
