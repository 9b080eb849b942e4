-- The same ledger, written with less: a transaction and its entry are one row, and one place to look.
--
-- What a row costs is mostly the pages that it changes, for each goes to the log and to the file. So an
-- entry has no table of its own; a credit is found by the number of its debit, which is young when the
-- credit comes, and not by a text anywhere in an index; a list of values is spelled out as comparisons,
-- because SQLite makes a table of an IN list each time that it checks it; and a trigger looks once.

DROP TRIGGER ledger_entry_follows;
DROP TRIGGER ledger_entry_is_permanent;
DROP TRIGGER ledger_entry_stays;
DROP TRIGGER ledger_transaction_is_permanent;
DROP TRIGGER ledger_transaction_stays;
DROP TRIGGER ledger_rollback_is_permanent;
DROP TRIGGER ledger_rollback_stays;
DROP INDEX ledger_credit;
ALTER TABLE ledger_transaction RENAME TO transaction_before;
ALTER TABLE ledger_rollback RENAME TO rollback_before;

-- Every request that was decided and kept, under its id, with what was answered; and what it entered.
CREATE TABLE ledger_transaction (
    number          INTEGER PRIMARY KEY, -- in order of decision
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    player_number   INTEGER NOT NULL REFERENCES player (number),
    sequence        INTEGER CHECK (sequence >= 1), -- of its entry, without a gap; NULL: declined
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
    game_id         TEXT,
    round_id        TEXT,
    hash            BLOB CHECK (length(hash) = 32), -- chained to the player's entry before
    UNIQUE (customer_number, transaction_id),
    CHECK (operation <> 'ROLLBACK' OR reference IS NOT NULL),
    CHECK (CASE WHEN outcome = 'applied' OR outcome = 'voided'
           THEN sequence IS NOT NULL AND movement_minor IS NOT NULL AND balance_minor IS NOT NULL
                AND hash IS NOT NULL
           ELSE sequence IS NULL AND movement_minor IS NULL AND balance_minor IS NULL
                AND hash IS NULL END),
    CHECK ((settles IS NOT NULL) =
           (operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL))
) STRICT;

INSERT INTO ledger_transaction
SELECT t.number, t.customer_number, t.player_number, t.sequence, t.amount_minor, e.movement_minor,
       e.balance_minor, t.created_ms,
       CASE WHEN t.operation = 'CREDIT' AND t.outcome = 'applied' THEN debit.number END,
       t.transaction_id, t.operation, t.outcome, t.reference, t.game_id, t.round_id, e.hash
FROM transaction_before AS t
LEFT JOIN ledger_entry AS e ON e.player_number = t.player_number AND e.sequence = t.sequence
LEFT JOIN transaction_before AS debit
    ON debit.customer_number = t.customer_number AND debit.transaction_id = t.reference
ORDER BY t.number;

CREATE UNIQUE INDEX ledger_by_player ON ledger_transaction (player_number, sequence)
    WHERE sequence IS NOT NULL;
-- Which credits refer to a debit.
CREATE INDEX ledger_credit ON ledger_transaction (settles) WHERE settles IS NOT NULL;
-- What was entered on a day.
CREATE INDEX ledger_entered ON ledger_transaction (created_ms) WHERE sequence IS NOT NULL;

-- Ids that are rolled back: a transaction's, or one that nobody has used yet (and never can).
CREATE TABLE ledger_rollback (
    customer_number    INTEGER NOT NULL REFERENCES customer (number),
    target_id          TEXT NOT NULL CHECK (length(target_id) BETWEEN 1 AND 64),
    player_number      INTEGER NOT NULL REFERENCES player (number),
    transaction_number INTEGER NOT NULL REFERENCES ledger_transaction (number), -- the ROLLBACK
    PRIMARY KEY (customer_number, target_id)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_rollback SELECT * FROM rollback_before;

DROP TABLE ledger_entry;
DROP TABLE rollback_before;
DROP TABLE transaction_before;

-- An entry follows the one before it, or it is not written.
CREATE TRIGGER ledger_entry_follows BEFORE INSERT ON ledger_transaction
WHEN NEW.sequence IS NOT NULL AND CASE NEW.sequence
    WHEN 1 THEN NEW.balance_minor <> NEW.movement_minor
    ELSE NOT EXISTS (SELECT 1 FROM ledger_transaction AS before
                     WHERE before.player_number = NEW.player_number
                     AND before.sequence = NEW.sequence - 1
                     AND before.balance_minor = NEW.balance_minor - NEW.movement_minor) END
BEGIN SELECT RAISE(ABORT, 'a ledger entry must follow the one before it'); END;

CREATE TRIGGER ledger_transaction_is_permanent BEFORE UPDATE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transaction_stays BEFORE DELETE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_is_permanent BEFORE UPDATE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_stays BEFORE DELETE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
