-- The index of transaction ids in blocks that prove what they hold: an id whose index entry is damaged
-- must not be taken for a new one. stores/platform/sqlite/ids.c says what a block is. ROLLBACKs stand
-- there under the id that they rolled back, too.
CREATE TABLE ledger_id_block (
    place INTEGER PRIMARY KEY -- its level times 2^60, and where its keys begin
          CHECK (place BETWEEN 0 AND 5764607523034234879),
    ids   BLOB NOT NULL
) STRICT;
DROP TABLE ledger_id_level;
CREATE TABLE ledger_id_level (
    level       INTEGER PRIMARY KEY CHECK (level BETWEEN 0 AND 4),
    ids         INTEGER NOT NULL, -- that stand in it
    next_place  INTEGER NOT NULL, -- of the block that moves on next
    last_number INTEGER NOT NULL  -- of the first: of the newest transaction
) STRICT;
INSERT INTO ledger_id_level
SELECT value.column1, 0, 0, 0 FROM (VALUES (0), (1), (2), (3), (4)) AS value;
SELECT ledger_ids_take_over((SELECT coalesce(max(number), 0) FROM ledger_transaction));

DROP TABLE ledger_id_0;
DROP TABLE ledger_id_1;
DROP TABLE ledger_id_2;
DROP TABLE ledger_id_3;
DROP TABLE ledger_id_4;

CREATE TRIGGER ledger_id_block_stays BEFORE DELETE ON ledger_id_block
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_level_stays BEFORE DELETE ON ledger_id_level
BEGIN SELECT RAISE(ABORT, 'the levels of ids stay'); END;
