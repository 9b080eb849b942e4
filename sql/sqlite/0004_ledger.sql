-- The ledger: wallet transactions that are kept for ever, and the entries that moved money.
--
-- Double entry: every entry moves its amount between the player's account and the clearing account of
-- the player's customer and currency; the movement is the player's side, its negative the other.
-- Append-only: nothing that was written is changed or deleted, and the triggers say so to whoever tries
-- by hand. Accounts are sums, kept so that a balance is one look-up; `croupier wallet verify` derives
-- them again from the entries. stores/ledger_record.h says what the columns mean.

-- Every request that was decided and kept, under its id, with what was answered.
CREATE TABLE ledger_transaction (
    number          INTEGER PRIMARY KEY, -- in order of decision
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    transaction_id  TEXT NOT NULL CHECK (length(transaction_id) BETWEEN 1 AND 64),
    player_number   INTEGER NOT NULL REFERENCES player (number),
    operation       TEXT NOT NULL CHECK (operation IN ('DEBIT', 'CREDIT', 'ROLLBACK')),
    outcome         TEXT NOT NULL CHECK (outcome IN (
                        'applied', 'voided', 'reference_not_found', 'transaction_rolled_back',
                        'already_rolled_back', 'already_settled', 'not_rollbackable',
                        'insufficient_funds', 'balance_limit_exceeded')),
    amount_minor    INTEGER NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    reference       TEXT CHECK (length(reference) BETWEEN 1 AND 64),
    game_id         TEXT,
    round_id        TEXT,
    sequence        INTEGER, -- of its entry; NULL: declined
    created_ms      INTEGER NOT NULL,
    UNIQUE (customer_number, transaction_id),
    CHECK ((sequence IS NOT NULL) = (outcome IN ('applied', 'voided'))),
    CHECK (operation <> 'ROLLBACK' OR reference IS NOT NULL)
) STRICT;
-- Which credits refer to a debit.
CREATE INDEX ledger_credit ON ledger_transaction (customer_number, reference)
    WHERE operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL;

CREATE TABLE ledger_entry (
    player_number      INTEGER NOT NULL REFERENCES player (number),
    sequence           INTEGER NOT NULL CHECK (sequence >= 1), -- of the player, without a gap
    transaction_number INTEGER NOT NULL REFERENCES ledger_transaction (number),
    movement_minor     INTEGER NOT NULL CHECK (movement_minor BETWEEN -1000000000000 AND 1000000000000),
    balance_minor      INTEGER NOT NULL CHECK (balance_minor BETWEEN 0 AND 9007199254740991),
    hash               BLOB NOT NULL CHECK (length(hash) = 32), -- chained to the entry before
    PRIMARY KEY (player_number, sequence)
) STRICT, WITHOUT ROWID;

-- Ids that are rolled back: a transaction's, or one that nobody has used yet (and never can).
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
    head          BLOB NOT NULL CHECK (length(head) = 32) -- hash of the last entry
) STRICT;

-- The other side of all entries of a customer's players in one currency.
CREATE TABLE ledger_clearing (
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    currency        TEXT NOT NULL REFERENCES currency (code),
    balance_minor   INTEGER NOT NULL CHECK (balance_minor BETWEEN -4611686018427387904 AND 0),
    PRIMARY KEY (customer_number, currency)
) STRICT, WITHOUT ROWID;

-- An entry follows the one before it, or it is not written.
CREATE TRIGGER ledger_entry_follows BEFORE INSERT ON ledger_entry
WHEN NEW.sequence <> 1 + coalesce(
         (SELECT max(sequence) FROM ledger_entry WHERE player_number = NEW.player_number), 0)
  OR NEW.balance_minor <> NEW.movement_minor + coalesce(
         (SELECT balance_minor FROM ledger_entry WHERE player_number = NEW.player_number
          ORDER BY sequence DESC LIMIT 1), 0)
BEGIN SELECT RAISE(ABORT, 'a ledger entry must follow the one before it'); END;

CREATE TRIGGER ledger_transaction_is_permanent BEFORE UPDATE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transaction_stays BEFORE DELETE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entry_is_permanent BEFORE UPDATE ON ledger_entry
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entry_stays BEFORE DELETE ON ledger_entry
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
CREATE TRIGGER ledger_clearing_stays BEFORE DELETE ON ledger_clearing
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
