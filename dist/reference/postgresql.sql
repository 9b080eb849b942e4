-- Commits here do not wait for the standby: there is none yet.
SET synchronous_commit = local;
-- Once, on the primary:  psql -f postgresql.sql
CREATE ROLE croupier LOGIN PASSWORD 'CHANGE-ME-PLATFORM';
CREATE ROLE croupier_replica LOGIN REPLICATION PASSWORD 'CHANGE-ME-STANDBY';
CREATE DATABASE croupier OWNER croupier ENCODING 'UTF8' TEMPLATE template0;
