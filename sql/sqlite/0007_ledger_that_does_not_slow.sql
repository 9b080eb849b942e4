-- The same ledger, whose cost an operation does not grow with its length.
--
-- An index by transaction id, or by player, has as many places to write to as it has pages, and the ids
-- and players of a batch are strewn over all of them: the longer the ledger, the more pages a batch
-- changes, logs and copies. So an entry points to the one before it, which is young when the player
-- plays; an index leads to the first of every 256 entries of a player only; and the ids stand in levels
-- that are written to in order (stores/platform_sqlite_ids.c).

DROP TRIGGER ledger_entry_follows;
DROP TRIGGER ledger_transaction_is_permanent;
DROP TRIGGER ledger_transaction_stays;
DROP TRIGGER ledger_rollback_is_permanent;
DROP TRIGGER ledger_rollback_stays;
DROP TRIGGER ledger_account_goes_on;
DROP TRIGGER ledger_account_stays;
ALTER TABLE ledger_transaction RENAME TO transaction_before;
ALTER TABLE ledger_rollback RENAME TO rollback_before;
ALTER TABLE ledger_account RENAME TO account_before;

-- Every request that was decided and kept, under its id, with what was answered; and what it entered.
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

INSERT INTO ledger_transaction
SELECT number, customer_number, player_number, sequence,
       CASE WHEN t.sequence > 1 THEN
           (SELECT before.number FROM transaction_before AS before
            WHERE before.player_number = t.player_number AND before.sequence = t.sequence - 1)
       ELSE 0 END,
       amount_minor, movement_minor, balance_minor, created_ms, settles, transaction_id, operation,
       outcome, reference, game_id, round_id, hash
FROM transaction_before AS t ORDER BY number;

-- Ids that are rolled back: a transaction's, or one that nobody has used yet (and never can).
CREATE TABLE ledger_rollback (
    customer_number    INTEGER NOT NULL REFERENCES customer (number),
    target_id          TEXT NOT NULL CHECK (length(target_id) BETWEEN 1 AND 64),
    player_number      INTEGER NOT NULL REFERENCES player (number),
    transaction_number INTEGER NOT NULL REFERENCES ledger_transaction (number), -- the ROLLBACK
    PRIMARY KEY (customer_number, target_id)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_rollback SELECT * FROM rollback_before;

CREATE TABLE ledger_account (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    balance_minor INTEGER NOT NULL CHECK (balance_minor BETWEEN 0 AND 9007199254740991),
    sequence      INTEGER NOT NULL CHECK (sequence >= 1),
    head          BLOB NOT NULL CHECK (length(head) = 32), -- hash of the last entry
    last_number   INTEGER NOT NULL REFERENCES ledger_transaction (number) -- the last entry
) STRICT;
INSERT INTO ledger_account
SELECT player_number, balance_minor, sequence, head,
       (SELECT t.number FROM transaction_before AS t
        WHERE t.player_number = a.player_number AND t.sequence = a.sequence)
FROM account_before AS a ORDER BY player_number;

-- The number of a transaction, under a hash of its customer and id: in one of these levels. An id is
-- written to the first and moves on in time, in order of keys.
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
INSERT INTO ledger_id_4
SELECT ledger_id_key(customer_number, transaction_id), number FROM transaction_before
ORDER BY ledger_id_key(customer_number, transaction_id), number;

-- Of the levels that ids move on from.
CREATE TABLE ledger_id_level (
    level    INTEGER PRIMARY KEY CHECK (level BETWEEN 0 AND 3),
    moved    INTEGER NOT NULL, -- how many ids have left it
    next_key INTEGER NOT NULL  -- where the next to leave begin
) STRICT;
INSERT INTO ledger_id_level
SELECT value.column1, (SELECT coalesce(max(number), 0) FROM transaction_before), 0
FROM (VALUES (0), (1), (2), (3)) AS value;

DROP TABLE account_before;
DROP TABLE rollback_before;
DROP TABLE transaction_before;

-- No two entries follow the same one: from the first, this leads through all entries of a player.
CREATE UNIQUE INDEX ledger_follows ON ledger_transaction (previous) WHERE previous <> 0;
CREATE UNIQUE INDEX ledger_by_player ON ledger_transaction (player_number, sequence)
    WHERE sequence % 256 = 1;
-- Which credits refer to a debit.
CREATE INDEX ledger_credit ON ledger_transaction (settles) WHERE settles IS NOT NULL;
-- What was entered on a day.
CREATE INDEX ledger_entered ON ledger_transaction (created_ms) WHERE sequence IS NOT NULL;

-- An entry follows the one before it, or it is not written.
CREATE TRIGGER ledger_entry_follows BEFORE INSERT ON ledger_transaction
WHEN NEW.sequence IS NOT NULL AND CASE NEW.sequence
    WHEN 1 THEN NEW.balance_minor <> NEW.movement_minor
    ELSE NOT EXISTS (SELECT 1 FROM ledger_transaction AS before
                     WHERE before.number = NEW.previous
                     AND before.player_number = NEW.player_number
                     AND before.sequence = NEW.sequence - 1
                     AND before.balance_minor = NEW.balance_minor - NEW.movement_minor) END
BEGIN SELECT RAISE(ABORT, 'a ledger entry must follow the one before it'); END;

-- A customer uses an id once.
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

-- An id leaves a level only when it stands in the next, and comes to that only from there.
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
