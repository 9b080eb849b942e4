-- The SQL of a batch of the ledger in SQLite: src/stores/platform/sqlite/ledger_load.c runs the
-- statements of its begin, ledger.c those of its commit.

-- ---- begin ----

-- field clearing_of_customer
SELECT balance_minor FROM ledger_clearing WHERE customer_number = ?1 AND currency = ?2

-- field last
SELECT number, ledger FROM ledger_last WHERE one = 1
-- field last_day
SELECT coalesce((SELECT day FROM ledger_day ORDER BY first_number DESC LIMIT 1), -9223372036854775807)

-- ---- commit ----

-- Rows are written many to a statement, which costs less than a statement for each: so much less is
-- begun and ended. The rows of 1, 8 and 32.
-- define INSERT_ROWS(rows)
INSERT INTO ledger_transaction (number, customer_number, player_number, amount_minor, created_ms,
  transaction_id, operation, outcome, reference, game, round_id, sequence, movement_minor,
  balance_minor, hash, settles, previous, provider, launch, kind, round_ended) VALUES {{rows}}
-- define ROW
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- define ROWS_8
{ROW}, {ROW}, {ROW}, {ROW}, {ROW}, {ROW}, {ROW}, {ROW}
-- define ROWS_32
{ROWS_8}, {ROWS_8}, {ROWS_8}, {ROWS_8}
-- field insert_row
{INSERT_ROWS(ROW)}
-- field insert_some_rows
{INSERT_ROWS(ROWS_8)}
-- field insert_many_rows
{INSERT_ROWS(ROWS_32)}

-- field insert_decline
INSERT INTO ledger_decline (player_number, position, transaction_number, hash)
VALUES (?1, ?2, ?3, ?4)

-- field insert_day
INSERT INTO ledger_day (first_number, day) VALUES (?1, ?2)

-- Each of these compares the stored row with the one that the batch was decided from.
-- field insert_account
INSERT INTO ledger_account (player_number, balance_minor, sequence, head, last_number)
VALUES (?1, ?2, ?3, ?4, ?5)
-- field update_account
UPDATE ledger_account SET balance_minor = ?2, sequence = ?3, head = ?4, last_number = ?5
WHERE player_number = ?1 AND balance_minor = ?6 AND sequence = ?7 AND head = ?8
AND last_number = ?9

-- field put_declined
INSERT INTO ledger_declined (player_number, declines, head) VALUES (?1, ?2, ?3)
ON CONFLICT (player_number) DO UPDATE SET declines = excluded.declines, head = excluded.head
WHERE ledger_declined.declines = ?4 AND ledger_declined.head = ?5

-- field insert_clearing
INSERT INTO ledger_clearing (customer_number, currency, balance_minor) VALUES (?1, ?2, ?3)
-- field update_clearing
UPDATE ledger_clearing SET balance_minor = ?3
WHERE customer_number = ?1 AND currency = ?2 AND balance_minor = ?4

-- field count_on
UPDATE ledger_last SET number = ?1 WHERE one = 1 AND number = ?2
