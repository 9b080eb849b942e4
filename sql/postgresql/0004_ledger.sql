-- The ledger: wallet transactions that are kept for ever, and the entries that moved money.
--
-- Double entry: every entry moves its amount between the player's account and the clearing account of
-- the player's customer and currency; the movement is the player's side, its negative the other.
-- Append-only: nothing that was written is changed or deleted, and the triggers say so to whoever tries
-- by hand. Accounts are sums, kept so that a balance is one look-up; `croupier wallet verify` derives
-- them again from the entries. stores/ledger_record.h says what the columns mean.
--
-- Several instances write at once. A batch locks its players' rows, in order of number, and reads the
-- rest after that; so one player's requests are decided one after the other. What players share is
-- decided by keys: an id by ledger_transaction's (customer_number, transaction_id, late), and the sum
-- of a clearing account by adding to it. Rows are checked by the statement, not one by one: foreign keys
-- would cost more than the insert, and would make every batch lock its customers' rows. LATERAL with LIMIT
-- keeps every such look-up one by an index, whatever the planner believes of tables that grow fast.

-- In order of decision, as far as one player's or one id's go: a batch takes one value, the first of its
-- own 512 numbers, after it has read all that it decides on.
CREATE SEQUENCE ledger_number AS bigint INCREMENT BY 512 START WITH 512 MINVALUE 512;

-- Every request that was decided and kept, under its id, with what was answered; and what it entered.
--
-- A row without an operation is no request. It holds the key of an id that was rolled back before
-- anybody used it, so that whoever uses it at that very moment, for whatever player, has to see it. A
-- request that comes later under such an id is `late`, and can only be declined.
CREATE TABLE ledger_transaction (
    number          bigint PRIMARY KEY,
    customer_number bigint NOT NULL,
    player_number   bigint NOT NULL,
    sequence        bigint CHECK (sequence >= 1), -- of its entry, without a gap; NULL: declined
    amount_minor    bigint NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    movement_minor  bigint CHECK (movement_minor BETWEEN -1000000000000 AND 1000000000000),
    balance_minor   bigint CHECK (balance_minor BETWEEN 0 AND 9007199254740991), -- afterwards
    created_ms      bigint NOT NULL,
    late            boolean NOT NULL CHECK (NOT late OR outcome = 'transaction_rolled_back'),
    transaction_id  text COLLATE "C" NOT NULL CHECK (octet_length(transaction_id) BETWEEN 1 AND 64),
    operation       text COLLATE "C" CHECK (operation IN ('DEBIT', 'CREDIT', 'ROLLBACK')),
    outcome         text COLLATE "C" CHECK (outcome IN (
                        'applied', 'voided', 'reference_not_found', 'transaction_rolled_back',
                        'already_rolled_back', 'already_settled', 'not_rollbackable',
                        'insufficient_funds', 'balance_limit_exceeded')),
    reference       text COLLATE "C" CHECK (octet_length(reference) BETWEEN 1 AND 64),
    game_id         text COLLATE "C" CHECK (octet_length(game_id) BETWEEN 1 AND 64),
    round_id        text COLLATE "C" CHECK (octet_length(round_id) BETWEEN 1 AND 64),
    hash            bytea CHECK (octet_length(hash) = 32), -- chained to the player's entry before
    UNIQUE (customer_number, transaction_id, late),
    UNIQUE (player_number, sequence),
    CHECK (CASE WHEN operation IS NULL
           THEN outcome IS NULL AND reference IS NULL AND amount_minor = 0
           ELSE outcome IS NOT NULL AND (operation <> 'ROLLBACK' OR reference IS NOT NULL) END),
    CHECK (CASE WHEN outcome IN ('applied', 'voided')
           THEN num_nulls(sequence, movement_minor, balance_minor, hash) = 0
           ELSE num_nonnulls(sequence, movement_minor, balance_minor, hash) = 0 END)
);
-- Which credits refer to a debit.
CREATE INDEX ledger_credit ON ledger_transaction (customer_number, reference)
    WHERE operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL;
-- Ids that are rolled back: a transaction's, or one that nobody has used yet (and never can).
CREATE TABLE ledger_rollback (
    customer_number    bigint NOT NULL,
    target_id          text COLLATE "C" NOT NULL CHECK (octet_length(target_id) BETWEEN 1 AND 64),
    player_number      bigint NOT NULL,
    transaction_number bigint NOT NULL UNIQUE REFERENCES ledger_transaction (number), -- the ROLLBACK
    PRIMARY KEY (customer_number, target_id)
);

-- With room in every page, so that an update stays in it and leaves the index alone.
CREATE TABLE ledger_account (
    player_number bigint PRIMARY KEY REFERENCES player (number),
    balance_minor bigint NOT NULL CHECK (balance_minor BETWEEN 0 AND 9007199254740991),
    sequence      bigint NOT NULL CHECK (sequence >= 1),
    head          bytea NOT NULL CHECK (octet_length(head) = 32) -- hash of the last entry
) WITH (fillfactor = 50);

-- The other side of all entries of a customer's players in one currency.
CREATE TABLE ledger_clearing (
    customer_number bigint NOT NULL REFERENCES customer (number),
    currency        text COLLATE "C" NOT NULL REFERENCES currency (code),
    balance_minor   bigint NOT NULL CHECK (balance_minor BETWEEN -4611686018427387904 AND 0),
    PRIMARY KEY (customer_number, currency)
) WITH (fillfactor = 10);

-- A transaction is its customer's player's, and an entry follows the one before it, or nothing of the
-- statement is written.
CREATE FUNCTION ledger_transactions_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT customer.number FROM player JOIN customer ON customer.id = player.customer_id
            WHERE player.number = written.player_number LIMIT 1) AS customer ON true
        LEFT JOIN LATERAL (
            SELECT entry.balance_minor FROM ledger_transaction AS entry
            WHERE entry.player_number = written.player_number
            AND entry.sequence = written.sequence - 1 LIMIT 1) AS before ON true
        WHERE customer.number IS DISTINCT FROM written.customer_number
        OR (written.sequence = 1 AND written.balance_minor <> written.movement_minor)
        OR (written.sequence > 1 AND written.balance_minor - written.movement_minor
            IS DISTINCT FROM before.balance_minor))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a ledger entry must follow the one before it';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_transactions_fit AFTER INSERT ON ledger_transaction
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT
    EXECUTE FUNCTION ledger_transactions_fit();

-- A rollback is an entry of its player, of an id that is that player's or is held for it.
CREATE FUNCTION ledger_rollbacks_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT undo.number FROM ledger_transaction AS undo
            WHERE undo.number = written.transaction_number
            AND undo.operation = 'ROLLBACK' AND undo.sequence IS NOT NULL
            AND undo.customer_number = written.customer_number
            AND undo.player_number = written.player_number
            AND undo.reference = written.target_id LIMIT 1) AS undo ON true
        LEFT JOIN LATERAL (
            SELECT target.player_number FROM ledger_transaction AS target
            WHERE target.customer_number = written.customer_number
            AND target.transaction_id = written.target_id
            AND NOT target.late LIMIT 1) AS target ON true
        WHERE undo.number IS NULL OR target.player_number IS DISTINCT FROM written.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a rollback must be of an id of its player';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_rollbacks_fit AFTER INSERT ON ledger_rollback
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT
    EXECUTE FUNCTION ledger_rollbacks_fit();

-- An account is what its last entry says.
CREATE FUNCTION ledger_accounts_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT entry.balance_minor, entry.hash FROM ledger_transaction AS entry
            WHERE entry.player_number = written.player_number
            AND entry.sequence = written.sequence LIMIT 1) AS last ON true
        WHERE last.balance_minor IS DISTINCT FROM written.balance_minor
        OR last.hash IS DISTINCT FROM written.head)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'an account must be what its last entry says';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_accounts_begin_right AFTER INSERT ON ledger_account
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION ledger_accounts_fit();
CREATE TRIGGER ledger_accounts_fit AFTER UPDATE ON ledger_account
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION ledger_accounts_fit();

CREATE TRIGGER ledger_account_goes_on BEFORE UPDATE ON ledger_account FOR EACH ROW
    WHEN (NEW.sequence <= OLD.sequence OR NEW.player_number <> OLD.player_number)
    EXECUTE FUNCTION refuse_change('an account only follows its entries');
CREATE TRIGGER ledger_clearing_goes_on BEFORE UPDATE ON ledger_clearing FOR EACH ROW
    WHEN (NEW.customer_number <> OLD.customer_number OR NEW.currency <> OLD.currency)
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_transaction_is_permanent BEFORE UPDATE OR DELETE ON ledger_transaction
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_rollback_is_permanent BEFORE UPDATE OR DELETE ON ledger_rollback
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_account_stays BEFORE DELETE ON ledger_account
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_clearing_stays BEFORE DELETE ON ledger_clearing
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_transaction_is_kept BEFORE TRUNCATE ON ledger_transaction
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_rollback_is_kept BEFORE TRUNCATE ON ledger_rollback
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_account_is_kept BEFORE TRUNCATE ON ledger_account
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_clearing_is_kept BEFORE TRUNCATE ON ledger_clearing
    EXECUTE FUNCTION refuse_change('the ledger is append-only');

-- The entries alone, for whoever reads here by hand.
CREATE VIEW ledger_entry AS
    SELECT player_number, sequence, number AS transaction_number, movement_minor, balance_minor, hash
    FROM ledger_transaction WHERE sequence IS NOT NULL;
