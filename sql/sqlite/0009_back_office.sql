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

-- Blocks: no bet of the player is taken and no game is launched for its money. A block is of one player, or of a
-- customer's reference in every currency, of which there need be no player yet: its id is the player's, or
-- CUSTOMER:REFERENCE; CUSTOMER/REFERENCE is the customer's own block of it. The row of a block that was taken away
-- stays and says why; what was before, the audit says.
ALTER TABLE player_block RENAME TO player_block_before;
CREATE TABLE player_block (
    id          TEXT PRIMARY KEY CHECK (id = coalesce(player_id, customer_id || ':' || reference)
                                OR player_id IS NULL AND id = customer_id || '/' || reference),
    player_id   TEXT REFERENCES player (id), -- NULL: every player of the reference
    customer_id TEXT NOT NULL REFERENCES customer (id),
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 64
                                     AND reference NOT GLOB '*[^A-Za-z0-9._:-]*'),
    blocked_ms  INTEGER CHECK (blocked_ms > 0), -- NULL: it was taken away
    until_ms    INTEGER CHECK (until_ms > blocked_ms), -- NULL: without an end
    reason      TEXT NOT NULL CHECK (length(CAST(reason AS BLOB)) <= 200)
) STRICT, WITHOUT ROWID;
INSERT INTO player_block (id, player_id, customer_id, reference, blocked_ms, until_ms, reason)
    SELECT player.id, player.id, player.customer_id, player.reference, before.blocked_ms, NULL, ''
    FROM player_block_before AS before JOIN player ON player.number = before.player_number;
DROP TABLE player_block_before;

-- Where a game, or every game of a provider, must not be offered: ISO 3166-1 codes separated by LF; '': nowhere.
ALTER TABLE game ADD COLUMN blocked_countries TEXT NOT NULL DEFAULT '';
ALTER TABLE provider ADD COLUMN blocked_countries TEXT NOT NULL DEFAULT '';

-- Which provider a game belonged to: since when to provider_id, and before that as a list of [until when, provider] in
-- JSON. A game that moves to another provider takes its past entries nowhere.
ALTER TABLE game ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE game ADD COLUMN moved TEXT NOT NULL DEFAULT '[]';

-- Sums of entries by day, so that nobody who asks for days or for all reads every entry. Whoever asks first adds the
-- entries up to `number`, and later those after it (src/stores/platform/ledger/kept_sums.c); they can be made again from the
-- entries, and `croupier wallet verify` compares them. A batch does not touch them.
CREATE TABLE ledger_summed (
    one    INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row
    number INTEGER NOT NULL CHECK (number >= 0) -- the entries up to this one are in ledger_sum
) STRICT;
INSERT INTO ledger_summed VALUES (1, 0);
CREATE TABLE ledger_sum (
    day            INTEGER NOT NULL, -- since 1970-01-01
    customer_id    TEXT NOT NULL,
    currency       TEXT NOT NULL,
    provider       TEXT NOT NULL, -- that moved the money, or that the game was of; '': none
    game           TEXT NOT NULL, -- '': none
    operation      TEXT NOT NULL,
    kind           TEXT NOT NULL, -- of a CREDIT, or of the one that a ROLLBACK undid; '': a win, or none
    transfer       INTEGER NOT NULL CHECK (transfer IN (0, 1)), -- without provider, game and round
    raised         INTEGER NOT NULL CHECK (raised IN (0, 1)), -- 1: of entries that raised a balance
    entries        INTEGER NOT NULL CHECK (entries > 0),
    movement_minor INTEGER NOT NULL,
    PRIMARY KEY (day, customer_id, currency, provider, game, operation, kind, transfer, raised)
) STRICT, WITHOUT ROWID;

-- The console's list of players, by customer and by the beginning of a reference.
CREATE INDEX player_of_customer ON player (customer_id);
CREATE INDEX player_named ON player (customer_id, lower(reference));

-- What a key may use: words of sports, casino, account, manage, separated by commas. Before, it was one of the first two.
ALTER TABLE api_key ADD COLUMN areas TEXT CHECK (areas <> ''); -- NULL: sports and casino
UPDATE api_key SET areas = scope;
ALTER TABLE api_key DROP COLUMN scope;
ALTER TABLE api_key RENAME COLUMN areas TO scope;
ALTER TABLE api_key ADD COLUMN may_issue TEXT CHECK (may_issue <> ''); -- what the keys that it makes may use; NULL: it makes none
ALTER TABLE api_key ADD COLUMN maker TEXT REFERENCES api_key (id); -- the key that made it; NULL: an operator issued it

-- Customers and providers that try things out, with money that counts nowhere. It is switched on before the first launch or
-- player of theirs, and never off after one.
ALTER TABLE customer ADD COLUMN sandbox INTEGER NOT NULL DEFAULT 0 CHECK (sandbox IN (0, 1));
ALTER TABLE provider ADD COLUMN sandbox INTEGER NOT NULL DEFAULT 0 CHECK (sandbox IN (0, 1));
CREATE TRIGGER customer_keeps_its_sandbox BEFORE UPDATE OF sandbox ON customer
WHEN NEW.sandbox <> OLD.sandbox AND (EXISTS (SELECT 1 FROM player WHERE customer_id = OLD.id)
  OR EXISTS (SELECT 1 FROM launch WHERE customer_id = OLD.id))
BEGIN SELECT RAISE(ABORT, 'sandbox: it can be switched only before the first launch'); END;
CREATE TRIGGER provider_keeps_its_sandbox BEFORE UPDATE OF sandbox ON provider
WHEN NEW.sandbox <> OLD.sandbox AND (EXISTS (SELECT 1 FROM launch WHERE provider_id = OLD.id)
  OR EXISTS (SELECT 1 FROM ledger_transaction WHERE game IN (SELECT id FROM game WHERE provider_id = OLD.id)))
BEGIN SELECT RAISE(ABORT, 'sandbox: it can be switched only before the first launch'); END;

-- What was seen of each request of a sandbox caller, the newest of each; src/records/conduct.h has the values, and
-- sql/statements/conduct.sql judges them. A hash is a SipHash, 0 where there was nothing.
CREATE TABLE conduct_fact (
    number     INTEGER PRIMARY KEY,
    caller     TEXT NOT NULL, -- a customer or a provider
    request_id TEXT NOT NULL,
    reason     TEXT NOT NULL, -- of an error
    from_ms    INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    act        INTEGER NOT NULL,
    status     INTEGER NOT NULL, -- 0: there was no whole answer
    wanted_s   INTEGER NOT NULL,
    waited_ms  INTEGER NOT NULL,
    pause_s    INTEGER NOT NULL, -- that Retry-After asked for
    connection INTEGER NOT NULL,
    names_tag  INTEGER NOT NULL,
    ends_round INTEGER NOT NULL,
    client     INTEGER NOT NULL, -- this and the next are hashes
    subject    INTEGER NOT NULL,
    content    INTEGER NOT NULL,
    reference  INTEGER NOT NULL,
    player     INTEGER NOT NULL,
    round      INTEGER NOT NULL,
    lost       INTEGER NOT NULL -- requests before it that were not looked at
) STRICT;
CREATE INDEX conduct_of_caller ON conduct_fact (caller, number);
CREATE INDEX conduct_of_subject ON conduct_fact (caller, subject, from_ms);
CREATE INDEX conduct_of_reference ON conduct_fact (caller, reference);
CREATE INDEX conduct_of_time ON conduct_fact (caller, from_ms);
