-- The SQL by which croupier audits a store in SQLite: src/stores/platform/sqlite/ids_audit.c its ids,
-- engine.c its shape.

-- define IDS
SELECT number, customer_number, coalesce(sequence, 0), transaction_id, coalesce(reference, ''),
  coalesce(provider, ''), operation, outcome FROM ledger_transaction
-- field ids
{IDS} ORDER BY number
-- field ids_of_number
{IDS} WHERE number = ?1

-- Two statements.
-- field make_audited
CREATE TEMP TABLE IF NOT EXISTS audited_id (key INTEGER NOT NULL, number INTEGER NOT NULL) STRICT;
DELETE FROM temp.audited_id
-- field add_audited
INSERT INTO temp.audited_id (key, number) VALUES (?1, ?2)
-- field audited
SELECT key, number FROM temp.audited_id ORDER BY key, number

-- The names and texts of a schema, in order.
-- field shape
SELECT type || ' ' || name, sql FROM sqlite_schema
WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY 1
