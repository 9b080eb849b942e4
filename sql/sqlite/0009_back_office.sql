-- What a back office needs, later in 0.2.0.

-- The rest of a provider's vocabulary. Rows from before have NULL in both columns, keep their hashes and verify.
ALTER TABLE ledger_transaction ADD COLUMN kind TEXT -- of a provider's CREDIT; NULL: a win
    CHECK (kind = 'promo' OR kind = 'jackpot' OR kind = 'adjustment');
ALTER TABLE ledger_transaction ADD COLUMN round_ended INTEGER CHECK (round_ended = 1); -- NULL: it was not said
