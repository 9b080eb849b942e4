-- Money that a provider of games moves for a player that was launched with it.
--
-- An id is its owner's: a customer's, or a provider's, which then is a negative number. So keys, marks and
-- references say of both kinds of owner what they said of customers, and no row that is there changes. The
-- player says which customer's money it is.

ALTER TABLE provider ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY UNIQUE;
-- Where a provider's calls may come from, as of customers; '': from anywhere.
ALTER TABLE provider ADD COLUMN cidrs text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE ledger_transaction RENAME COLUMN customer_number TO owner_number;
ALTER TABLE ledger_transaction
    ADD COLUMN launch_id text COLLATE "C" CHECK (octet_length(launch_id) BETWEEN 5 AND 23);
ALTER TABLE ledger_rollback RENAME COLUMN customer_number TO owner_number;

-- As before (0004_ledger.sql).
CREATE OR REPLACE FUNCTION ledger_rollbacks_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT undo.number FROM ledger_transaction AS undo
            WHERE undo.number = written.transaction_number
            AND undo.operation = 'ROLLBACK' AND undo.sequence IS NOT NULL
            AND undo.owner_number = written.owner_number
            AND undo.player_number = written.player_number
            AND undo.reference = written.target_id LIMIT 1) AS undo ON true
        LEFT JOIN LATERAL (
            SELECT target.player_number FROM ledger_transaction AS target
            WHERE target.owner_number = written.owner_number
            AND target.transaction_id = written.target_id
            AND NOT target.late LIMIT 1) AS target ON true
        WHERE undo.number IS NULL OR target.player_number IS DISTINCT FROM written.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a rollback must be of an id of its player';
    END IF;
    RETURN NULL;
END $$;
