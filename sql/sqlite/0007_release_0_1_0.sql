-- As released: 13009a4f476f2802741848925688260cc4467d97e1fdb88b37e13ac8435f6c4f
-- The schema of croupier 0.1.0, for a new store, which the next steps bring up to date. A store that 0.1.0
-- itself has made by its seven steps is the same, and its last step has the checksum above.
--
-- Rows are never deleted: a revoked key and a removed address stay, marked, so that a range scan finds every
-- change since a revision. Times are milliseconds since the Unix epoch. Constraints repeat the checks of the
-- program, so that a row written by hand is refused as well.

-- The one counter that every change of a customer, key or address takes its number from.
CREATE TABLE store_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO store_revision (one, revision) VALUES (1, 0);

CREATE TABLE customer (
    number              INTEGER PRIMARY KEY, -- in order of creation
    id                  TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    name                TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    casino              INTEGER NOT NULL CHECK (casino IN (0, 1)),
    sports              TEXT NOT NULL,       -- "all", "none" or "cricket,tennis"
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    cidrs               TEXT NOT NULL,       -- separated by one space; empty: denied everywhere
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT;
CREATE TABLE api_key (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id  TEXT NOT NULL REFERENCES customer (id),
    label        TEXT NOT NULL CHECK (length(CAST(label AS BLOB)) <= 64),
    prefix       TEXT NOT NULL CHECK (length(prefix) = 8), -- of the key, to recognise it by
    digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole key
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms INTEGER CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   INTEGER CHECK (revoked_ms > 0),   -- NULL: live
    revision     INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX api_key_by_customer ON api_key (customer_id, number);
CREATE TABLE legacy_address (
    address             BLOB PRIMARY KEY CHECK (length(address) = 16), -- v4 as ::ffff:a.b.c.d
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed             INTEGER NOT NULL CHECK (removed IN (0, 1)),
    sports              TEXT NOT NULL,
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT, WITHOUT ROWID;

-- What the minor unit of a currency is worth, frozen when the currency is first used: an amount in
-- the ledger must never change its meaning, whatever a later edition of ISO 4217 says.
CREATE TABLE currency (
    code       TEXT PRIMARY KEY CHECK (code GLOB '[A-Z][A-Z][A-Z]'),
    exponent   INTEGER NOT NULL CHECK (exponent BETWEEN 0 AND 4), -- minor units are 10^-exponent
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One customer + reference + currency is one player, for ever.
CREATE TABLE player (
    number      INTEGER PRIMARY KEY, -- in order of creation
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id TEXT NOT NULL REFERENCES customer (id),
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 64
                                     AND reference NOT GLOB '*[^A-Za-z0-9._:-]*'),
    currency    TEXT NOT NULL REFERENCES currency (code),
    created_ms  INTEGER NOT NULL,
    UNIQUE (customer_id, reference, currency)
) STRICT;
CREATE TRIGGER currency_is_frozen BEFORE UPDATE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency is frozen when it is first used'); END;
CREATE TRIGGER currency_stays BEFORE DELETE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency that was used stays'); END;
CREATE TRIGGER player_is_permanent BEFORE UPDATE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never changed'); END;
CREATE TRIGGER player_stays BEFORE DELETE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never deleted'); END;

-- Game providers, their games, and which games a customer may use. A provider's secret is kept sealed.
-- Their counter is not the one of customers: neither reader should wake the other.
CREATE TABLE games_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO games_revision (one, revision) VALUES (1, 0);
CREATE TABLE provider (
    id         TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    launch_url TEXT NOT NULL CHECK (length(launch_url) BETWEEN 8 AND 1024),
    return_url TEXT CHECK (length(return_url) BETWEEN 8 AND 1024), -- NULL: none
    audience   TEXT NOT NULL CHECK (length(audience) BETWEEN 1 AND 256),
    secret     BLOB NOT NULL CHECK (length(secret) BETWEEN 29 AND 540), -- sealed
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_ms INTEGER NOT NULL,
    revision   INTEGER NOT NULL
, launch_call INTEGER NOT NULL DEFAULT 0 CHECK (launch_call IN (0, 1))) STRICT, WITHOUT ROWID;
CREATE TABLE game (
    id            TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    provider_id   TEXT NOT NULL REFERENCES provider (id),
    name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    category      TEXT NOT NULL CHECK (length(CAST(category AS BLOB)) BETWEEN 1 AND 64),
    features      TEXT NOT NULL, -- lists: one item a line, in the order given
    rtp_bps       INTEGER CHECK (rtp_bps BETWEEN 0 AND 10000),
    volatility    TEXT CHECK (volatility IN ('low', 'medium', 'high')),
    thumbnail_url TEXT CHECK (length(thumbnail_url) BETWEEN 8 AND 1024),
    demo          INTEGER NOT NULL CHECK (demo IN (0, 1)),
    currencies    TEXT NOT NULL,
    languages     TEXT NOT NULL,
    devices       TEXT NOT NULL,
    enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    updated_ms    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX game_by_provider ON game (provider_id, id);

-- A customer without a row may use every game (if it may use the casino at all).
CREATE TABLE customer_games (
    customer_id TEXT PRIMARY KEY REFERENCES customer (id),
    every_game  INTEGER NOT NULL CHECK (every_game IN (0, 1)),
    games       TEXT NOT NULL, -- ids, one a line, in order; "" with every_game
    revision    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The ledger: the accounts that are the other side of the players', by customer and currency.
CREATE TABLE ledger_clearing (
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    currency        TEXT NOT NULL REFERENCES currency (code),
    balance_minor   INTEGER NOT NULL CHECK (balance_minor BETWEEN -4611686018427387904 AND 0),
    PRIMARY KEY (customer_number, currency)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER ledger_clearing_stays BEFORE DELETE ON ledger_clearing
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Every request that was decided and kept, under its id, with its answer; and the entry that it made.
CREATE TABLE ledger_transaction (
    number          INTEGER PRIMARY KEY, -- in order of decision
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    player_number   INTEGER NOT NULL REFERENCES player (number),
    sequence        INTEGER CHECK (sequence >= 1), -- of its entry, without a gap; NULL: declined
    previous        INTEGER NOT NULL, -- the number of the player's entry before; 0: there is none, or declined
    amount_minor    INTEGER NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    movement_minor  INTEGER CHECK (movement_minor BETWEEN -1000000000000 AND 1000000000000),
    balance_minor   INTEGER CHECK (balance_minor BETWEEN 0 AND 9007199254740991), -- afterwards
    created_ms      INTEGER NOT NULL,
    settles         INTEGER, -- of an applied CREDIT with a reference: the number of that DEBIT
    transaction_id  TEXT NOT NULL CHECK (length(transaction_id) BETWEEN 1 AND 64),
    operation       TEXT NOT NULL CHECK (operation = 'DEBIT' OR operation = 'CREDIT'
                                         OR operation = 'ROLLBACK'),
    outcome         TEXT NOT NULL CHECK (
                        outcome = 'applied' OR outcome = 'voided'
                        OR outcome = 'insufficient_funds' OR outcome = 'reference_not_found'
                        OR outcome = 'transaction_rolled_back' OR outcome = 'already_rolled_back'
                        OR outcome = 'already_settled' OR outcome = 'not_rollbackable'
                        OR outcome = 'balance_limit_exceeded'),
    reference       TEXT CHECK (length(reference) BETWEEN 1 AND 64),
    game            TEXT, -- its id; called so that no statement of an older program fits
    round_id        TEXT,
    hash            BLOB CHECK (length(hash) = 32), -- chained to the player's entry before
    CHECK (operation <> 'ROLLBACK' OR reference IS NOT NULL),
    CHECK (CASE WHEN outcome = 'applied' OR outcome = 'voided'
           THEN sequence IS NOT NULL AND movement_minor IS NOT NULL AND balance_minor IS NOT NULL
                AND hash IS NOT NULL
           ELSE sequence IS NULL AND movement_minor IS NULL AND balance_minor IS NULL
                AND hash IS NULL END),
    CHECK ((previous <> 0) = (sequence IS NOT NULL AND sequence > 1)),
    CHECK ((settles IS NOT NULL) =
           (operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL))
) STRICT;

-- Ids that are rolled back: a transaction's, or one that no one has used yet (and never can).
CREATE TABLE ledger_rollback (
    customer_number    INTEGER NOT NULL REFERENCES customer (number),
    target_id          TEXT NOT NULL CHECK (length(target_id) BETWEEN 1 AND 64),
    player_number      INTEGER NOT NULL REFERENCES player (number),
    transaction_number INTEGER NOT NULL REFERENCES ledger_transaction (number), -- the ROLLBACK
    PRIMARY KEY (customer_number, target_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_account (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    balance_minor INTEGER NOT NULL CHECK (balance_minor BETWEEN 0 AND 9007199254740991),
    sequence      INTEGER NOT NULL CHECK (sequence >= 1),
    head          BLOB NOT NULL CHECK (length(head) = 32), -- hash of the last entry
    last_number   INTEGER NOT NULL REFERENCES ledger_transaction (number) -- the last entry
) STRICT;

-- The number of a transaction, under a hash of its customer and id, in one of five levels.
CREATE TABLE ledger_id_0 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_1 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_2 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_3 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_4 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_level (
    level    INTEGER PRIMARY KEY CHECK (level BETWEEN 0 AND 3),
    moved    INTEGER NOT NULL, -- how many ids have left it
    next_key INTEGER NOT NULL  -- where the next to leave begin
) STRICT;
INSERT INTO ledger_id_level VALUES (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0);

CREATE UNIQUE INDEX ledger_follows ON ledger_transaction (previous) WHERE previous <> 0;
CREATE UNIQUE INDEX ledger_by_player ON ledger_transaction (player_number, sequence)
    WHERE sequence % 256 = 1;
CREATE INDEX ledger_credit ON ledger_transaction (settles) WHERE settles IS NOT NULL;
CREATE INDEX ledger_entered ON ledger_transaction (created_ms) WHERE sequence IS NOT NULL;
CREATE TRIGGER ledger_entry_follows BEFORE INSERT ON ledger_transaction
WHEN NEW.sequence IS NOT NULL AND CASE NEW.sequence
    WHEN 1 THEN NEW.balance_minor <> NEW.movement_minor
    ELSE NOT EXISTS (SELECT 1 FROM ledger_transaction AS before
                     WHERE before.number = NEW.previous
                     AND before.player_number = NEW.player_number
                     AND before.sequence = NEW.sequence - 1
                     AND before.balance_minor = NEW.balance_minor - NEW.movement_minor) END
BEGIN SELECT RAISE(ABORT, 'a ledger entry must follow the one before it'); END;
CREATE TRIGGER ledger_id_is_new BEFORE INSERT ON ledger_id_0
WHEN EXISTS (SELECT 1 FROM (SELECT number FROM ledger_id_0 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_1 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_2 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_3 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_4 WHERE key = NEW.key) AS other
             CROSS JOIN ledger_transaction AS theirs ON theirs.number = other.number
             CROSS JOIN ledger_transaction AS ours ON ours.number = NEW.number
             WHERE ours.customer_number = theirs.customer_number
             AND ours.transaction_id = theirs.transaction_id)
BEGIN SELECT RAISE(ABORT, 'a transaction id is used once'); END;
CREATE TRIGGER ledger_transaction_is_permanent BEFORE UPDATE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transaction_stays BEFORE DELETE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_is_permanent BEFORE UPDATE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_stays BEFORE DELETE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_account_goes_on BEFORE UPDATE ON ledger_account
WHEN NEW.sequence <= OLD.sequence OR NEW.player_number <> OLD.player_number
BEGIN SELECT RAISE(ABORT, 'an account only follows its entries'); END;
CREATE TRIGGER ledger_account_stays BEFORE DELETE ON ledger_account
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_0_is_permanent BEFORE UPDATE ON ledger_id_0
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_is_permanent BEFORE UPDATE ON ledger_id_1
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_2_is_permanent BEFORE UPDATE ON ledger_id_2
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_3_is_permanent BEFORE UPDATE ON ledger_id_3
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_4_is_permanent BEFORE UPDATE ON ledger_id_4
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_0_moves_on BEFORE DELETE ON ledger_id_0
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_1 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_moves_on BEFORE DELETE ON ledger_id_1
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_2 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_2_moves_on BEFORE DELETE ON ledger_id_2
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_3 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_3_moves_on BEFORE DELETE ON ledger_id_3
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_4 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_4_stays BEFORE DELETE ON ledger_id_4
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_is_known BEFORE INSERT ON ledger_id_1
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_0 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_2_is_known BEFORE INSERT ON ledger_id_2
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_1 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_3_is_known BEFORE INSERT ON ledger_id_3
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_2 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_4_is_known BEFORE INSERT ON ledger_id_4
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_3 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_level_stays BEFORE DELETE ON ledger_id_level
BEGIN SELECT RAISE(ABORT, 'the levels of ids stay'); END;
