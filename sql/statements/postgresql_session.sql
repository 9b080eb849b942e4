-- The SQL of a session with PostgreSQL (src/stores/platform/postgres/session.c), and of the migration of
-- its schema (engine.c).

-- Asks for the server's identity and for the session's settings. It sets synchronous_commit even if
-- the value is right already, so that the session does not follow a server that is configured otherwise
-- later. It only ever raises the value, so a configured remote_apply stays.
-- field greeting
SELECT pg_is_in_recovery(), current_setting('server_encoding') = 'UTF8',
  current_setting('statement_timeout') <> '0'
    AND current_setting('default_transaction_isolation') = 'read committed',
  set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
  CASE WHEN has_function_privilege('pg_catalog.pg_control_system()', 'execute')
    THEN (SELECT system_identifier::text FROM pg_catalog.pg_control_system()) ELSE '-' END
  || ' ' || CASE WHEN pg_is_in_recovery() THEN '-'
    ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
  || ' ' || (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database()),
  current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', pg_backend_pid(),
  current_setting('default_transaction_read_only') = 'on', current_setting('synchronous_standby_names') = '',
  (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- For a transaction: a long answer to a slow reader must not count as a slow statement. A query that
-- reads all of a table may scan it in order, and join it with another in memory or in order. And the server looks
-- every second whether the client is still there: what a command that was killed waits for, or holds,
-- becomes free. Servers on other systems cannot look, and refuse the setting.
-- field no_timeout
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true),
  set_config('enable_bitmapscan', 'on', true), set_config('enable_mergejoin', 'on', true),
  set_config('work_mem', '32MB', true), set_config('client_connection_check_interval',
  CASE WHEN version() ~ 'linux|darwin|bsd' THEN '1s' ELSE '0' END, true)

-- Sessions of this user that wait for a synchronous standby, for longer than $1 milliseconds.
-- field waiting_commits
SELECT count(*) FROM {WAITING_SINCE} $1::bigint * interval '1 ms'
-- define WAITING_SINCE
pg_catalog.pg_stat_activity WHERE datname = current_database()
AND usename = session_user AND wait_event_type = 'IPC' AND wait_event = 'SyncRep'
AND state_change < clock_timestamp() -

-- The rights that docs/postgresql.md gives and this user does not have. (A table that is not there has
-- another check.)
-- define MISSING
SELECT word || ' on ' || name AS missing FROM (VALUES
  ('SELECT INSERT UPDATE', 'customer api_key operator_token legacy_address provider game customer_games player_block
   console_operator ledger_account ledger_clearing ledger_declined usage_requests'),
  ('SELECT UPDATE', 'store_revision games_revision audit_revision ledger_summed'),
  ('SELECT INSERT', 'currency player player_opened ledger_transaction ledger_rollback ledger_decline launch audit_trail'),
  ('SELECT INSERT UPDATE DELETE', 'operator_credential ledger_verification ledger_sum'),
  ('SELECT INSERT DELETE', 'conduct_fact'), ('SELECT', 'store_identity schema_migration')) AS rights (words, names),
  string_to_table(words, ' ') AS word, string_to_table(names, ' ') AS name
WHERE NOT has_table_privilege(to_regclass(name), word)
UNION ALL SELECT 'UPDATE (created_ms) on player' WHERE NOT has_column_privilege('player', 'created_ms', 'UPDATE')
UNION ALL SELECT 'USAGE on ledger_number' WHERE NOT has_sequence_privilege('ledger_number', 'USAGE')

-- Half of statement_timeout is nearly half of `[platform] timeout_ms`.
-- field refuses_changes
SELECT reason FROM (SELECT 'takes no changes: it is a standby, or default_transaction_read_only is on' AS reason, 1 AS place
    WHERE pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'
  UNION ALL SELECT 'this user lacks the right ' || min(missing) || CASE WHEN count(*) > 1
      THEN ', and ' || count(*) - 1 || ' more' ELSE '' END || '; see docs/postgresql.md for the rights it needs', 2
    FROM ({MISSING}) AS rights HAVING count(*) > 0
  UNION ALL SELECT 'a commit waits for a synchronous standby that does not answer: make sure that no other server was promoted', 3
    WHERE EXISTS (SELECT FROM {WAITING_SINCE} current_setting('statement_timeout')::interval / 2)) AS reasons
ORDER BY place LIMIT 1

-- ---- migrating ----

-- NULL: there is no place for tables.
-- field has_schema
SELECT CASE WHEN current_schema() IS NOT NULL
  THEN (to_regclass('schema_migration') IS NOT NULL)::int END

-- "crup"; the lock is one of this schema.
-- field lock_schema
SELECT pg_advisory_xact_lock(1668445552, hashtext(coalesce(current_schema(), '')))

-- field make_schema
CREATE TABLE IF NOT EXISTS schema_migration (number integer PRIMARY KEY CHECK (number > 0),
  name text NOT NULL, checksum text NOT NULL, applied_ms bigint NOT NULL)
