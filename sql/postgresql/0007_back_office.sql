-- What a back office needs, later in 0.2.0.

-- The rest of a provider's vocabulary. Rows from before have NULL in both columns, keep their hashes and verify.
ALTER TABLE ledger_transaction
    ADD COLUMN kind text COLLATE "C" CHECK (kind IN ('promo', 'jackpot', 'adjustment')), -- of a CREDIT; NULL: a win
    ADD COLUMN round_ended smallint CHECK (round_ended = 1); -- NULL: it was not said

-- Tokens (cro_*), with which machines call the admin API. The role and the address blocks are of the token; a revoked
-- row stays.
CREATE TABLE operator_token (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23), -- the first characters of the token
    name         text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 32),
    role         text COLLATE "C" NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    digest       bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the whole token
    cidrs        text COLLATE "C" NOT NULL, -- as a customer's; empty: from anywhere
    created_ms   bigint NOT NULL,
    expires_ms   bigint CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms bigint CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   bigint CHECK (revoked_ms > 0),   -- NULL: live
    revision     bigint NOT NULL UNIQUE
);
CREATE UNIQUE INDEX operator_token_name ON operator_token (name) WHERE revoked_ms IS NULL;
