-- The SQL by which croupier makes the schema of a store in SQLite (src/stores/platform/sqlite/engine.c),
-- and audits its ids (ids_audit.c) and its shape (engine.c).

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

-- Two statements; the number is SQLITE_APPLICATION_ID. Every store has the text of the table, so not a
-- space of it may change.
-- field make_schema
CREATE TABLE IF NOT EXISTS schema_migration (
  number INTEGER PRIMARY KEY CHECK (number > 0), name TEXT NOT NULL, checksum TEXT NOT NULL,
  applied_ms INTEGER NOT NULL) STRICT;
PRAGMA application_id = 1668445552

-- define SHAPE
sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'
-- The names and texts of a schema, as one text.
-- field shape
SELECT json_group_array(json_array(type || ' ' || name, sql)) FROM {SHAPE}
-- The first name that differs between this schema and the one of the text ?1, and how.
-- field difference
WITH stored AS (SELECT type || ' ' || name AS name, sql FROM {SHAPE}),
  made AS (SELECT value ->> 0 AS name, value ->> 1 AS sql FROM json_each(?1))
SELECT name, CASE WHEN stored.name IS NULL THEN 'is not there'
  WHEN made.name IS NULL THEN 'is not croupier''s' ELSE 'is not as croupier makes it' END
FROM stored FULL JOIN made USING (name) WHERE stored.sql IS NOT made.sql ORDER BY name LIMIT 1
