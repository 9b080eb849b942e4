-- Links and sessions that ended long ago are deleted, and the list of sessions begins at those that are live. (They
-- are the only rows that are ever deleted: the audit trail keeps what was done.)
CREATE INDEX operator_credential_end ON operator_credential (expires_ms, number);
DROP INDEX operator_credential_open;
