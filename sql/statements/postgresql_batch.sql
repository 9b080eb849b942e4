-- The SQL of a batch of the ledger in PostgreSQL: src/stores/platform/postgres/ledger_load.c runs the
-- statements of its begin, ledger.c those of its commit. Parameters are arrays, a row of the batch each.

-- ---- begin ----

-- Sets up this connection further than others (uri.c): its statements all look up single rows by keys.
-- field use_indexes
SELECT set_config('enable_hashjoin', 'off', false)

-- field owners_of_ids
SELECT owner.id, owner.number FROM unnest($1::text[]) AS asked (id)
CROSS JOIN LATERAL (SELECT id, number FROM customer WHERE customer.id = asked.id
  UNION ALL SELECT id, -number FROM provider WHERE provider.id = asked.id LIMIT 1) AS owner

-- field lock_players
SELECT count(*) FROM unnest($1::bigint[]) AS bare (number)
CROSS JOIN LATERAL (SELECT player.number FROM player WHERE player.number = bare.number
  LIMIT 1 FOR NO KEY UPDATE) AS locked

-- define NUMBERED
(SELECT unnest($1::bigint[]) AS number, generate_subscripts($1::bigint[], 1) AS at) AS asked
-- field lock_accounts
SELECT asked.at, account.* FROM {NUMBERED}
CROSS JOIN LATERAL (SELECT balance_minor, sequence, head FROM ledger_account
  WHERE player_number = asked.number LIMIT 1 FOR NO KEY UPDATE) AS account

-- field lock_clearings
SELECT count(*) FROM (SELECT FROM ledger_clearing WHERE (customer_number, currency) IN
  (SELECT * FROM unnest($1::bigint[], $2::text[]))
  ORDER BY customer_number, currency FOR NO KEY UPDATE) AS locked

-- field declines_of_players
SELECT asked.at, declined.* FROM {NUMBERED}
CROSS JOIN LATERAL (SELECT declines, head FROM ledger_declined
  WHERE player_number = asked.number LIMIT 1) AS declined

-- Where no player is blocked, which is common, one look at the table is all.
-- field blocks_of_players
SELECT player.at, block.until_ms FROM unnest($1::text[], $2::text[], $3::text[])
  WITH ORDINALITY AS player (id, customer_id, reference, at)
CROSS JOIN LATERAL ({PLAYER_BLOCKED_UNTIL}) AS block (until_ms)
WHERE block.until_ms IS NOT NULL AND EXISTS (SELECT FROM player_block
  WHERE blocked_ms IS NOT NULL)

-- field clearings_of_customers
SELECT asked.at, clearing.balance_minor
FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS asked (customer, code, at)
CROSS JOIN LATERAL (SELECT balance_minor FROM ledger_clearing
  WHERE customer_number = asked.customer AND currency = asked.code LIMIT 1) AS clearing

-- After everything that is decided on: see sql/postgresql/0005_release_0_1_0.sql. And after
-- lock_accounts, whose lock on the table lasts until the commit: a tail of the ledger waits for the
-- transactions that have it (ledger_read.c). The sequence caches no numbers, for the same reason.
-- field take_numbers
SELECT nextval('ledger_number'), pg_current_xact_id()::text::bigint

-- ---- commit ----

-- Sorts the rows by their keys, so that two batches with the same ids do not wait for each other. A
-- late row has another key than the row that holds its voided id. If another batch has committed or
-- voided an id since begin, the key refuses this one. (unnest in the list of a SELECT costs a third
-- of one in FROM.)
-- define INSERT_KEPT(late)
INSERT INTO ledger_transaction (number, owner_number, player_number, transaction_id, late,
  operation, outcome, reference, game_id, round_id, amount_minor, created_ms, sequence,
  movement_minor, balance_minor, hash, launch_id, kind, round_ended, settles)
SELECT number, owner, player, id, {{late}}, operation, outcome, reference, game, round,
  amount, created, sequence, movement, balance, hash, launch, kind, ended, settles
FROM (SELECT unnest($1::bigint[]) AS number, unnest($2::bigint[]) AS owner,
  unnest($3::bigint[]) AS player, unnest($4::text[]) AS id, unnest($5::bigint[]) AS late,
  unnest($6::text[]) AS operation, unnest($7::text[]) AS outcome,
  unnest($8::text[]) AS reference, unnest($9::text[]) AS game, unnest($10::text[]) AS round,
  unnest($11::bigint[]) AS amount, unnest($12::bigint[]) AS created,
  unnest($13::bigint[]) AS sequence, unnest($14::bigint[]) AS movement,
  unnest($15::bigint[]) AS balance, unnest($16::bytea[]) AS hash,
  unnest($17::text[]) AS launch, unnest($18::text[]) AS kind,
  unnest($19::bigint[]) AS ended, unnest($20::bigint[]) AS settles) AS kept
-- define IS_LATE
late IS NOT NULL OR CASE WHEN outcome = 'transaction_rolled_back'
  THEN EXISTS (SELECT FROM ledger_transaction AS key WHERE key.owner_number = owner
    AND key.transaction_id = id AND key.operation IS NULL OFFSET 0) ELSE false END
-- define IS_NOT_LATE
false
-- field insert_kept
{INSERT_KEPT(IS_LATE)} WHERE operation IS NOT NULL
OR NOT EXISTS (SELECT FROM ledger_transaction AS used
  WHERE used.owner_number = owner AND used.transaction_id = id OFFSET 0)
-- This is for batches of entries alone, which are never late and hold no key, as most are.
-- field insert_entries
{INSERT_KEPT(IS_NOT_LATE)}

-- field insert_rollbacks
INSERT INTO ledger_rollback (owner_number, target_id, player_number, transaction_number)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])

-- field insert_declines
INSERT INTO ledger_decline (player_number, position, transaction_number, hash)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])

-- field write_declined
INSERT INTO ledger_declined (player_number, declines, head)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
ON CONFLICT (player_number) DO UPDATE SET declines = excluded.declines, head = excluded.head

-- The accounts that begin has locked.
-- field update_accounts
UPDATE ledger_account SET balance_minor = changed.balance, sequence = changed.sequence,
  head = changed.head
FROM (SELECT unnest($1::bigint[]) AS player, unnest($2::bigint[]) AS balance,
  unnest($3::bigint[]) AS sequence, unnest($4::bytea[]) AS head) AS changed
WHERE ledger_account.player_number = changed.player

-- field insert_accounts
INSERT INTO ledger_account (player_number, balance_minor, sequence, head)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])

-- field insert_clearings
INSERT INTO ledger_clearing (customer_number, currency, balance_minor)
SELECT customer, currency, 0 FROM unnest($1::bigint[], $2::text[]) AS new (customer, currency)
ON CONFLICT (customer_number, currency) DO NOTHING

-- field lock_sums
SELECT count(locked.balance_minor)
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS sum (customer, code, movement)
CROSS JOIN LATERAL (SELECT balance_minor FROM ledger_clearing
  WHERE customer_number = sum.customer AND currency = sum.code LIMIT 1 FOR NO KEY UPDATE)
  AS locked

-- field add_to_clearings
UPDATE ledger_clearing SET balance_minor = ledger_clearing.balance_minor + sum.movement
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS sum (customer, currency, movement)
WHERE ledger_clearing.customer_number = sum.customer AND ledger_clearing.currency = sum.currency

-- ---- the fate of a lost commit ----

-- A transaction that the server has heard of is running, committed or aborted; one that another
-- server has taken over without, after a failure, is neither and not there. When it is not running,
-- whether its first row is there is all that counts: asked by a later statement, so from a later
-- snapshot.
-- field is_running
SELECT CASE WHEN $1::xid8 < pg_current_xact_id()
  THEN (pg_xact_status($1::xid8) = 'in progress')::int ELSE 0 END

-- A message in the server's log, which is not read, when the row is there: the commit that follows
-- waits for the standby then. Numbers can come again after a failover that lost some, so all of the
-- row is compared.
-- field is_kept
SELECT pg_logical_emit_message(true, 'croupier', '') FROM ledger_transaction
WHERE number = $1 AND transaction_id = $2 AND created_ms = $3
AND hash IS NOT DISTINCT FROM $4::bytea
