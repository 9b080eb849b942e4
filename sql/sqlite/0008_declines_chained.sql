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
           ledger_decline_hash(coalesce(last.head, zeroblob(32)), player.customer_id, player.id,
                               coalesce(last.declines, 0) + 1, t.transaction_id, t.operation, t.outcome,
                               player.currency, currency.exponent, t.amount_minor,
                               coalesce(t.reference, ''), coalesce(t.game, ''),
                               coalesce(t.round_id, ''), t.created_ms)
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

-- A decline is chained, or it is not written.
CREATE TRIGGER ledger_decline_follows BEFORE INSERT ON ledger_decline
WHEN NEW.position > 1 AND NOT EXISTS (
    SELECT 1 FROM ledger_decline AS before
    WHERE before.player_number = NEW.player_number AND before.position = NEW.position - 1)
BEGIN SELECT RAISE(ABORT, 'a decline must follow the one before it'); END;
CREATE TRIGGER ledger_transaction_is_chained BEFORE INSERT ON ledger_transaction
WHEN NEW.sequence IS NULL AND NOT EXISTS (
    SELECT 1 FROM ledger_decline AS chained
    WHERE chained.transaction_number = NEW.number AND chained.player_number = NEW.player_number)
BEGIN SELECT RAISE(ABORT, 'a decline must be chained'); END;

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
