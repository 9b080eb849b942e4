-- The same ledger, whose rows are only appended: what can be derived from them is no longer kept here.
--
-- The index of transaction ids stands in files beside the database (stores/platform/sqlite/ids.c), and is
-- made from the rows again when they are missing. What a trigger looked up for every row, the writer
-- knows, and `croupier wallet verify` proves it: that an entry follows the one before it, and that a
-- decline is chained. That nothing is changed or deleted, the triggers still say. A program of schema 9
-- finds neither its index nor its rollbacks, and does not start with a newer schema anyway.

DROP TRIGGER ledger_entry_follows;
DROP TRIGGER ledger_transaction_is_chained;
DROP TRIGGER ledger_decline_follows;
DROP INDEX ledger_follows;
DROP INDEX ledger_credit;
DROP INDEX ledger_entered;

-- ROLLBACKs are found by the id that they rolled back, in the index of ids.
DROP TRIGGER ledger_rollback_is_permanent;
DROP TRIGGER ledger_rollback_stays;
DROP TABLE ledger_rollback;
DROP TRIGGER ledger_id_block_stays;
DROP TRIGGER ledger_id_level_stays;
DROP TABLE ledger_id_block;
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
