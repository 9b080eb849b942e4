-- Money that a provider of games moves for a player that was launched with it. Of all that is there, the
-- customer moved it.

ALTER TABLE ledger_transaction ADD COLUMN provider TEXT CHECK (length(provider) BETWEEN 1 AND 64);
ALTER TABLE ledger_transaction ADD COLUMN launch TEXT CHECK (length(launch) BETWEEN 5 AND 23); -- its id

-- Where a provider's calls may come from, as of customers; '': from anywhere.
ALTER TABLE provider ADD COLUMN cidrs TEXT NOT NULL DEFAULT '';
