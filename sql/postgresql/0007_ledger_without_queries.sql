-- The ledger's rows without a query each. What these triggers refused, the program decides while it holds the
-- player's lock, the keys refuse to whoever decided on something old, and `croupier wallet verify` proves.
DROP TRIGGER ledger_transactions_fit ON ledger_transaction;
DROP FUNCTION ledger_transactions_fit();
DROP TRIGGER ledger_accounts_begin_right ON ledger_account;
DROP TRIGGER ledger_accounts_fit ON ledger_account;
DROP FUNCTION ledger_accounts_fit();

-- A decline is chained, or it is not written: asked of declines alone.
DROP TRIGGER ledger_transactions_are_chained ON ledger_transaction;
DROP FUNCTION ledger_transactions_are_chained();
CREATE FUNCTION ledger_decline_is_chained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger_decline AS chained
                   WHERE chained.transaction_number = NEW.number
                   AND chained.player_number = NEW.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a decline must be chained';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_decline_is_chained AFTER INSERT ON ledger_transaction FOR EACH ROW
    WHEN (NEW.sequence IS NULL AND NEW.operation IS NOT NULL)
    EXECUTE FUNCTION ledger_decline_is_chained();

-- What tells ids apart comes first, so that nearly every comparison on the way through the index is one.
ALTER TABLE ledger_transaction
    DROP CONSTRAINT ledger_transaction_customer_number_transaction_id_late_key,
    ADD UNIQUE (transaction_id, customer_number, late);
DROP INDEX ledger_credit;
CREATE INDEX ledger_credit ON ledger_transaction (reference, customer_number)
    WHERE operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL;
