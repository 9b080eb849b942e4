-- From 0.1.0 to 0.2.0.
--
-- The ledger's rows are only appended, and what follows from them is not in the database. The index of transaction
-- ids stands in files beside it (src/stores/platform/sqlite/ids.c), and is made from the rows when they are missing.
-- The writer knows that an entry follows the one before it and that a decline is chained, and `croupier wallet
-- verify` proves it. The triggers still refuse to change or delete a row. A program of 0.1.0 finds neither its index
-- nor its rollbacks, and does not start on a newer schema.

DROP TRIGGER ledger_entry_follows;
DROP INDEX ledger_follows;
DROP INDEX ledger_credit;
DROP INDEX ledger_entered;

-- ROLLBACKs are found by the id that they rolled back, in the index of ids.
DROP TRIGGER ledger_rollback_is_permanent;
DROP TRIGGER ledger_rollback_stays;
DROP TABLE ledger_rollback;
DROP TABLE ledger_id_0;
DROP TABLE ledger_id_1;
DROP TABLE ledger_id_2;
DROP TABLE ledger_id_3;
DROP TABLE ledger_id_4;
DROP TABLE ledger_id_level;

-- How far the ledger has come, written with every batch: what the end of a table alone says, one damaged
-- page may hide.
CREATE TABLE ledger_last (
    one    INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row
    number INTEGER NOT NULL CHECK (number >= 0), -- of the newest transaction; 0: there is none
    ledger BLOB NOT NULL CHECK (length(ledger) = 16) -- random: which ledger the files beside it belong to
) STRICT;
INSERT INTO ledger_last
SELECT 1, coalesce(max(number), 0), randomblob(16) FROM ledger_transaction;

-- The days (UTC) that transactions are of: from `first_number` until before the next row's they are of `day`.
CREATE TABLE ledger_day (
    first_number INTEGER PRIMARY KEY CHECK (first_number >= 1),
    day          INTEGER NOT NULL -- since 1970-01-01
) STRICT;
INSERT INTO ledger_day
SELECT t.number, t.created_ms / 86400000
FROM ledger_transaction AS t
LEFT JOIN ledger_transaction AS before ON before.number = t.number - 1
WHERE before.number IS NULL OR before.created_ms / 86400000 <> t.created_ms / 86400000
ORDER BY t.number;

CREATE TRIGGER ledger_last_goes_on BEFORE UPDATE ON ledger_last
WHEN NEW.number <= OLD.number OR NEW.ledger <> OLD.ledger OR NEW.one <> OLD.one
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_last_stays BEFORE DELETE ON ledger_last
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_day_is_permanent BEFORE UPDATE ON ledger_day
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_day_stays BEFORE DELETE ON ledger_day
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- A second record of what verify could not prove so far: the declines that are kept, and the players.

-- The declines of a player, each chained to the one before. The table ledger_transaction says what they are.
CREATE TABLE ledger_decline (
    player_number      INTEGER NOT NULL REFERENCES player (number),
    position           INTEGER NOT NULL CHECK (position >= 1), -- of the player, without a gap
    transaction_number INTEGER NOT NULL UNIQUE, -- written before the transaction, which is refused without
    hash               BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (player_number, position)
) STRICT, WITHOUT ROWID;

-- Where each player's declines have come to. Apart from ledger_account, because few have any.
CREATE TABLE ledger_declined (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    declines      INTEGER NOT NULL CHECK (declines >= 1), -- position of the last
    head          BLOB NOT NULL CHECK (length(head) = 32) -- hash of the last
) STRICT;

-- One decline after the other, in order of decision: a trigger does it for each row of this table.
CREATE TABLE decline_before (number INTEGER PRIMARY KEY, player_number INTEGER NOT NULL) STRICT;
CREATE TRIGGER decline_is_chained AFTER INSERT ON decline_before
BEGIN
    INSERT INTO ledger_decline
    SELECT t.player_number, coalesce(last.declines, 0) + 1, t.number,
           ledger_chain(coalesce(last.head, zeroblob(32)),
                        'decline' || char(10) || player.customer_id || char(10) || player.id || char(10)
                        || (coalesce(last.declines, 0) + 1) || char(10) || t.transaction_id || char(10)
                        || t.operation || char(10) || t.outcome || char(10) || player.currency || char(10)
                        || currency.exponent || char(10) || t.amount_minor || char(10)
                        || coalesce(t.reference, '') || char(10) || coalesce(t.game, '') || char(10)
                        || coalesce(t.round_id, '') || char(10) || t.created_ms || char(10))
    FROM ledger_transaction AS t
    LEFT JOIN player ON player.number = t.player_number
    LEFT JOIN currency ON currency.code = player.currency
    LEFT JOIN ledger_declined AS last ON last.player_number = t.player_number
    WHERE t.number = NEW.number;
    INSERT INTO ledger_declined
    SELECT player_number, position, hash FROM ledger_decline WHERE transaction_number = NEW.number
    ON CONFLICT (player_number) DO UPDATE SET declines = excluded.declines, head = excluded.head;
END;
INSERT INTO decline_before
SELECT number, player_number FROM ledger_transaction WHERE sequence IS NULL ORDER BY number;
DROP TABLE decline_before;

-- Each player as it was opened, to tell whether somebody has altered or removed one since.
CREATE TABLE player_opened (
    player_number INTEGER PRIMARY KEY,
    id            TEXT NOT NULL,
    customer_id   TEXT NOT NULL,
    reference     TEXT NOT NULL,
    currency      TEXT NOT NULL,
    exponent      INTEGER NOT NULL,
    created_ms    INTEGER NOT NULL
) STRICT;
INSERT INTO player_opened
SELECT player.number, player.id, player.customer_id, player.reference, player.currency,
       currency.exponent, player.created_ms
FROM player JOIN currency ON currency.code = player.currency ORDER BY player.number;

CREATE TRIGGER player_is_recorded AFTER INSERT ON player
BEGIN
    INSERT INTO player_opened
    SELECT NEW.number, NEW.id, NEW.customer_id, NEW.reference, NEW.currency, exponent, NEW.created_ms
    FROM currency WHERE code = NEW.currency;
END;

CREATE TRIGGER ledger_decline_is_permanent BEFORE UPDATE ON ledger_decline
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_decline_stays BEFORE DELETE ON ledger_decline
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_declined_goes_on BEFORE UPDATE ON ledger_declined
WHEN NEW.declines <= OLD.declines OR NEW.player_number <> OLD.player_number
BEGIN SELECT RAISE(ABORT, 'declines only follow each other'); END;
CREATE TRIGGER ledger_declined_stays BEFORE DELETE ON ledger_declined
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER player_opened_is_permanent BEFORE UPDATE ON player_opened
BEGIN SELECT RAISE(ABORT, 'a player is never changed'); END;
CREATE TRIGGER player_opened_stays BEFORE DELETE ON player_opened
BEGIN SELECT RAISE(ABORT, 'a player is never deleted'); END;

-- Launches: who was sent to which game, and under which name its provider knows the player.
--
-- What a provider may ask of a player's money rests on them, years later too (a CREDIT needs no
-- fresh launch), so rows are never changed and never deleted. They take no revision: nobody keeps a
-- copy of them.

CREATE TABLE launch (
    number      INTEGER PRIMARY KEY, -- in order of creation
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id TEXT NOT NULL REFERENCES customer (id),
    player_id   TEXT REFERENCES player (id), -- NULL: in demo, where there is no player
    provider_id TEXT NOT NULL REFERENCES provider (id),
    subject     TEXT NOT NULL CHECK (length(subject) = 22), -- the provider's own id of the player
    game_id     TEXT NOT NULL REFERENCES game (id),
    created_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX launch_by_subject ON launch (provider_id, subject) WHERE player_id IS NOT NULL;
CREATE INDEX launch_by_player ON launch (player_id) WHERE player_id IS NOT NULL;

CREATE TRIGGER launch_is_permanent BEFORE UPDATE ON launch
BEGIN SELECT RAISE(ABORT, 'a launch is never changed'); END;
CREATE TRIGGER launch_stays BEFORE DELETE ON launch
BEGIN SELECT RAISE(ABORT, 'a launch is never deleted'); END;

-- Who changed what: a row for each change of a record, written in the transaction of the change.
--
-- Columns that hold secrets are named in `before` and `after` and their values are not. Rows are only
-- ever added (src/records/trail.h).

-- The counter that gives the numbers of the rows, in the order of commits and without a gap.
CREATE TABLE audit_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO audit_revision (one, revision) VALUES (1, 0);

CREATE TABLE audit_trail (
    number  INTEGER PRIMARY KEY CHECK (number > 0),
    at_ms   INTEGER NOT NULL,
    who     TEXT NOT NULL CHECK (length(CAST(who AS BLOB)) BETWEEN 1 AND 128),
    command TEXT NOT NULL CHECK (length(CAST(command AS BLOB)) <= 64), -- "customer set"
    kind    TEXT NOT NULL CHECK (length(CAST(kind AS BLOB)) BETWEEN 1 AND 32), -- "customer"
    object  TEXT NOT NULL CHECK (length(CAST(object AS BLOB)) BETWEEN 1 AND 128), -- its id
    before  TEXT CHECK (substr(before, 1, 1) = '{'), -- JSON of what changed; NULL: it was added
    after   TEXT NOT NULL CHECK (substr(after, 1, 1) = '{')
) STRICT;

CREATE TRIGGER audit_trail_is_permanent BEFORE UPDATE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_trail_stays BEFORE DELETE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_trail_follows BEFORE INSERT ON audit_trail
WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM audit_trail), 0)
BEGIN SELECT RAISE(ABORT, 'the audit trail has no gap'); END;

-- Players who are blocked: no bet of theirs is taken and no game is launched for their money. A row is
-- there as long as the player is blocked; what was before, the audit says.
CREATE TABLE player_block (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    blocked_ms    INTEGER NOT NULL CHECK (blocked_ms > 0)
) STRICT;

-- How many requests each customer made: by day, by group of routes, by class of the answers' status. Servers add
-- to it once a minute. Nothing refers to these rows: an operator may delete those of days no longer wanted.
CREATE TABLE usage_requests (
    day         INTEGER NOT NULL, -- UTC, since 1970-01-01
    customer_id TEXT NOT NULL, -- '': of those that a server could not tell apart
    route_group TEXT NOT NULL,
    answers_2xx INTEGER NOT NULL CHECK (answers_2xx >= 0),
    answers_3xx INTEGER NOT NULL CHECK (answers_3xx >= 0),
    answers_4xx INTEGER NOT NULL CHECK (answers_4xx >= 0),
    answers_5xx INTEGER NOT NULL CHECK (answers_5xx >= 0),
    PRIMARY KEY (day, customer_id, route_group)
) STRICT, WITHOUT ROWID;

-- A provider's secret is replaced with an overlap: `secret` is the newest and signs, `older_secret` is still good
-- until it is retired. The first secret of a provider has no kid: what it signs names no key, as ever.
ALTER TABLE provider ADD COLUMN secret_kid TEXT CHECK (length(secret_kid) = 8);
ALTER TABLE provider ADD COLUMN secret_added_ms INTEGER; -- NULL: not known
ALTER TABLE provider ADD COLUMN older_secret BLOB CHECK (length(older_secret) BETWEEN 29 AND 540);
ALTER TABLE provider ADD COLUMN older_secret_kid TEXT CHECK (length(older_secret_kid) = 8);
ALTER TABLE provider ADD COLUMN older_secret_added_ms INTEGER;

-- Money that a provider of games moves for a player that was launched with it. Of all that is there, the
-- customer moved it.

ALTER TABLE ledger_transaction ADD COLUMN provider TEXT CHECK (length(provider) BETWEEN 1 AND 64);
ALTER TABLE ledger_transaction ADD COLUMN launch TEXT CHECK (length(launch) BETWEEN 5 AND 23); -- its id

-- Where a provider's calls may come from, as of customers; '': from anywhere.
ALTER TABLE provider ADD COLUMN cidrs TEXT NOT NULL DEFAULT '';

-- What a key may less than its customer: only some of the routes, only from some of the addresses.
ALTER TABLE api_key ADD COLUMN scope TEXT CHECK (scope IN ('sports', 'casino')); -- NULL: as its customer
ALTER TABLE api_key ADD COLUMN cidrs TEXT NOT NULL DEFAULT ''; -- as a customer's; empty: as its customer

-- Who may use the operator's console, and what they sign in with. Rows are never deleted: a removed operator and a
-- link that was used stay, marked. Both take their numbers from store_revision.
CREATE TABLE console_operator (
    name       TEXT PRIMARY KEY CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 32),
    role       TEXT NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed    INTEGER NOT NULL CHECK (removed IN (0, 1)),
    created_ms INTEGER NOT NULL,
    revision   INTEGER NOT NULL UNIQUE
) STRICT;

-- Links that sign in once (lnk_*) and sessions (ses_*).
CREATE TABLE operator_credential (
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    operator_name TEXT NOT NULL REFERENCES console_operator (name),
    digest        BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole secret
    address       TEXT NOT NULL, -- that a session was signed in from; else empty
    created_ms    INTEGER NOT NULL,
    expires_ms    INTEGER NOT NULL CHECK (expires_ms > 0),
    ended_ms      INTEGER CHECK (ended_ms > 0), -- NULL: neither used up nor signed out
    revision      INTEGER NOT NULL UNIQUE
) STRICT;

-- How the last proof of the ledger ended, of the whole and of what was recent: for whoever watches. The proof itself is
-- in no row; these may be deleted.
CREATE TABLE ledger_verification (
    scope      TEXT PRIMARY KEY CHECK (scope IN ('whole', 'recent')),
    started_ms INTEGER NOT NULL,
    ended_ms   INTEGER NOT NULL,
    since_ms   INTEGER NOT NULL, -- of the recent: from when on; else 0
    sound      INTEGER NOT NULL CHECK (sound IN (0, 1)),
    entries    INTEGER NOT NULL CHECK (entries >= 0), -- that were proved
    players    INTEGER NOT NULL CHECK (players >= 0),
    reason     TEXT NOT NULL -- what is broken; '': nothing
) STRICT, WITHOUT ROWID;

-- Links and sessions that ended long ago are deleted, and the list of sessions begins at those that are live. (They
-- are the only rows that are ever deleted: the audit trail keeps what was done.)
CREATE INDEX operator_credential_end ON operator_credential (expires_ms, number);
