-- What a back office needs, later in 0.2.0.

-- The rest of a provider's vocabulary. Rows from before have NULL in both columns, keep their hashes and verify.
ALTER TABLE ledger_transaction ADD COLUMN kind TEXT -- of a provider's CREDIT; NULL: a win
    CHECK (kind = 'promo' OR kind = 'jackpot' OR kind = 'adjustment');
ALTER TABLE ledger_transaction ADD COLUMN round_ended INTEGER CHECK (round_ended = 1); -- NULL: it was not said

-- Tokens (cro_*), with which machines call the admin API. The role and the address blocks are of the token; a revoked
-- row stays.
CREATE TABLE operator_token (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23), -- the first characters of the token
    name         TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 32),
    role         TEXT NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole token
    cidrs        TEXT NOT NULL, -- as a customer's; empty: from anywhere
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms INTEGER CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   INTEGER CHECK (revoked_ms > 0),   -- NULL: live
    revision     INTEGER NOT NULL UNIQUE
) STRICT;
CREATE UNIQUE INDEX operator_token_name ON operator_token (name) WHERE revoked_ms IS NULL;
