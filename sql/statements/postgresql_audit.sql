-- The SQL by which croupier asks PostgreSQL whether a store is sound: src/stores/platform/postgres/audit.c
-- runs the statements of indexes and tables, engine.c the one of their shape.

-- ---- indexes and tables ----

-- define TABLES
('customer'::regclass, 'currency'::regclass, 'player'::regclass, 'player_opened'::regclass,
  'ledger_transaction'::regclass, 'ledger_rollback'::regclass, 'ledger_decline'::regclass,
  'ledger_declined'::regclass, 'ledger_account'::regclass, 'ledger_clearing'::regclass)
-- define INDEXES_OF(kind)
SELECT index.indexrelid::bigint, index.indexrelid::regclass::text FROM pg_index AS index
JOIN pg_class ON pg_class.oid = index.indexrelid
JOIN pg_am ON pg_am.oid = pg_class.relam AND pg_am.amname {kind}
WHERE index.indrelid IN {TABLES} ORDER BY 1
-- The indexes, those of kind BRIN, which amcheck does not know, and the tables.
-- field indexes
{INDEXES_OF(<> 'brin')}
-- field brin_indexes
{INDEXES_OF(= 'brin')}
-- field tables
SELECT pg_class.oid::bigint, pg_class.oid::regclass::text FROM pg_class
WHERE pg_class.oid IN {TABLES} ORDER BY 1

-- field may_use_amcheck
SELECT ((SELECT count(DISTINCT function.proname) FROM pg_extension AS extension
  JOIN pg_proc AS function ON function.pronamespace = extension.extnamespace
  WHERE extension.extname = 'amcheck'
  AND (function.proname = 'bt_index_check' AND function.pronargs = 2
    OR function.proname = 'verify_heapam')
  AND pg_function_is_visible(function.oid)
  AND has_function_privilege(function.oid, 'EXECUTE')) = 2)::int

-- Each raises an error, or returns no row, when it is sound.
-- field check_index
SELECT 1 FROM (SELECT bt_index_check($1::bigint::oid::regclass, true)::text AS answer OFFSET 0)
  AS done WHERE answer IS NULL
-- field check_table
SELECT 1 FROM verify_heapam($1::bigint::oid::regclass, true) LIMIT 1
-- field compare_index
SELECT 1 WHERE NOT index_has_its_table($1::bigint::oid)
-- field compare_brin
SELECT 1 WHERE NOT brin_has_its_table($1::bigint::oid)

-- ---- shape ----

-- The schema with the store; no row where this user may not make another one.
-- field schema
SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('schema_migration')
AND has_database_privilege(current_database(), 'CREATE')

-- Texts of the catalog differ between versions of the server, so both sides are this one's, and a
-- restored dump has other parentheses, which do not count. $1 is the schema with the store. Another
-- program's trigger on a table of ours is found as well.
-- field difference
WITH shape AS (SELECT n.nspname AS of, 'trigger ' || t.tgname || ' of ' || c.relname AS name,
    t.tgenabled::text || pg_get_triggerdef(t.oid) AS text
    FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE NOT t.tgisinternal
  UNION ALL SELECT n.nspname, 'constraint ' || o.conname || ' of ' || c.relname,
    pg_get_constraintdef(o.oid) FROM pg_constraint AS o JOIN pg_class AS c ON c.oid = o.conrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
  UNION ALL SELECT schemaname, 'index ' || indexname, indexdef FROM pg_indexes
  UNION ALL SELECT n.nspname, 'function ' || p.proname, p.prosrc FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
  UNION ALL SELECT n.nspname, 'column ' || a.attname || ' of ' || c.relname,
    format_type(a.atttypid, a.atttypmod) || a.attnotnull
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'r'
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped),
  both_of AS (SELECT of, name, regexp_replace(replace(text, quote_ident(of) || '.', ''),
    '[()[:space:]]', '', 'g') AS text FROM shape WHERE of IN ('croupier_shape', $1)),
  made AS (SELECT name, text FROM both_of WHERE of = 'croupier_shape'),
  stored AS (SELECT name, text FROM both_of WHERE of = $1)
SELECT name FROM (SELECT * FROM (SELECT * FROM made EXCEPT SELECT * FROM stored) AS lacking
  UNION ALL SELECT * FROM (SELECT * FROM stored EXCEPT SELECT * FROM made) AS added
    WHERE name LIKE 'trigger %' AND EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n
      ON n.oid = c.relnamespace AND n.nspname = 'croupier_shape'
      WHERE added.name LIKE '% of ' || c.relname)) AS other ORDER BY 1 LIMIT 1
