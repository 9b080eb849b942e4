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

-- Blocks: no bet of the player is taken and no game is launched for its money. A block is of one player, or of a
-- customer's reference in every currency, of which there need be no player yet: its id is the player's, or
-- CUSTOMER:REFERENCE. The row of a block that was taken away stays and says why; what was before, the audit says.
ALTER TABLE player_block RENAME TO player_block_before;
CREATE TABLE player_block (
    id          text COLLATE "C" CHECK (id = coalesce(player_id, customer_id || ':' || reference)),
    player_id   text COLLATE "C" REFERENCES player (id), -- NULL: every player of the reference
    customer_id text COLLATE "C" NOT NULL REFERENCES customer (id),
    reference   text COLLATE "C" NOT NULL CHECK (reference ~ '^[A-Za-z0-9._:-]{1,64}$'),
    blocked_ms  bigint CHECK (blocked_ms > 0), -- NULL: it was taken away
    until_ms    bigint CHECK (until_ms > blocked_ms), -- NULL: without an end
    reason      text COLLATE "C" NOT NULL CHECK (octet_length(reason) <= 200),
    CONSTRAINT player_block_by_id PRIMARY KEY (id)
);
INSERT INTO player_block (id, player_id, customer_id, reference, blocked_ms, until_ms, reason)
    SELECT player.id, player.id, player.customer_id, player.reference, before.blocked_ms, NULL, ''
    FROM player_block_before AS before JOIN player ON player.number = before.player_number;
DROP TABLE player_block_before;
