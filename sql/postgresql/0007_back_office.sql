-- What a back office needs, later in 0.2.0.

-- The rest of a provider's vocabulary. Rows from before have NULL in both columns, keep their hashes and verify.
ALTER TABLE ledger_transaction
    ADD COLUMN kind text COLLATE "C" CHECK (kind IN ('promo', 'jackpot', 'adjustment')), -- of a CREDIT; NULL: a win
    ADD COLUMN round_ended smallint CHECK (round_ended = 1); -- NULL: it was not said
