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
