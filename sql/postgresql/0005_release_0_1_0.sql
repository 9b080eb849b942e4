-- As released: f2ae70f94c44fee0e9453e815995321c64e142eaac17547bc317a13d6a896912
-- The schema of croupier 0.1.0, for a new store, which the next steps bring up to date. A store that 0.1.0
-- itself has made by its five steps is the same, and its last step has the checksum above.

-- Customers, their keys, and legacy address policies.
--
-- Rows are never deleted: a revoked key and a removed address stay, marked, so that "what changed
-- since revision R" (stores/platform_store.h) is a range scan that misses nothing. Times are
-- milliseconds since the Unix epoch. Constraints repeat what the program checks, so that a row
-- written by hand is refused as well. Texts compare by their bytes (COLLATE "C"): orders, and with
-- them cursors and indexes, must not change with a system's locales.

-- Which store this is: a copy carries the name of its original, another store never does.
CREATE TABLE store_identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO store_identity DEFAULT VALUES;

-- The one counter that every change of a customer, key or address takes its number from. Whoever
-- changes something locks this row first and holds it until the commit, so that revisions become
-- visible in their order, however many write at once.
CREATE TABLE store_revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL CHECK (revision >= 0)
);
INSERT INTO store_revision (revision) VALUES (0);

CREATE TABLE customer (
    number              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in order of creation
    id                  text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    name                text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    enabled             boolean NOT NULL,
    casino              boolean NOT NULL,
    sports              text COLLATE "C" NOT NULL, -- "all", "none" or "cricket,tennis"
    rate_requests       bigint CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds bigint CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    cidrs               text COLLATE "C" NOT NULL, -- separated by one space; empty: denied everywhere
    created_ms          bigint NOT NULL,
    revision            bigint NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
);

CREATE TABLE api_key (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    customer_id  text COLLATE "C" NOT NULL REFERENCES customer (id),
    label        text COLLATE "C" NOT NULL CHECK (octet_length(label) <= 64),
    prefix       text COLLATE "C" NOT NULL CHECK (octet_length(prefix) = 8), -- to recognise it by
    digest       bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the whole key
    created_ms   bigint NOT NULL,
    expires_ms   bigint CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms bigint CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   bigint CHECK (revoked_ms > 0),   -- NULL: live
    revision     bigint NOT NULL UNIQUE
);
CREATE INDEX api_key_by_customer ON api_key (customer_id, number);

CREATE TABLE legacy_address (
    address             bytea PRIMARY KEY CHECK (octet_length(address) = 16), -- v4 as ::ffff:a.b.c.d
    enabled             boolean NOT NULL,
    removed             boolean NOT NULL,
    sports              text COLLATE "C" NOT NULL,
    rate_requests       bigint CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds bigint CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    created_ms          bigint NOT NULL,
    revision            bigint NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
);

-- Players, and the currencies that they have money in.
--
-- One customer + reference + currency is one player, for ever: rows are never changed and never
-- deleted, and the triggers below say so to whoever tries by hand. Neither takes a revision: nobody
-- keeps a copy of them.

-- For tables that only grow: a trigger before UPDATE, DELETE or TRUNCATE, whose argument is the text.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'restrict_violation';
END $$;

-- What the minor unit of a currency is worth, frozen when the currency is first used: an amount in
-- the ledger must never change its meaning, whatever a later edition of ISO 4217 says.
CREATE TABLE currency (
    code       text COLLATE "C" PRIMARY KEY CHECK (code ~ '^[A-Z]{3}$'),
    exponent   smallint NOT NULL CHECK (exponent BETWEEN 0 AND 4), -- minor units are 10^-exponent
    created_ms bigint NOT NULL
);

CREATE TABLE player (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in order of creation
    id          text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    customer_id text COLLATE "C" NOT NULL REFERENCES customer (id),
    reference   text COLLATE "C" NOT NULL CHECK (reference ~ '^[A-Za-z0-9._:-]{1,64}$'),
    currency    text COLLATE "C" NOT NULL REFERENCES currency (code),
    created_ms  bigint NOT NULL,
    UNIQUE (customer_id, reference, currency)
);

CREATE TRIGGER currency_is_frozen BEFORE UPDATE ON currency
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a currency is frozen when it is first used');
CREATE TRIGGER currency_stays BEFORE DELETE ON currency
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a currency that was used stays');
CREATE TRIGGER currency_is_kept BEFORE TRUNCATE ON currency
    EXECUTE FUNCTION refuse_change('a currency that was used stays');
CREATE TRIGGER player_is_permanent BEFORE UPDATE ON player
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a player is never changed');
CREATE TRIGGER player_stays BEFORE DELETE ON player
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a player is never deleted');
CREATE TRIGGER player_is_kept BEFORE TRUNCATE ON player
    EXECUTE FUNCTION refuse_change('a player is never deleted');

-- Game providers, their games, and which games a customer may use.
--
-- Rows are never deleted. A provider's secret is kept sealed (casino/secrets.h): whoever reads this
-- database without the key file learns nothing of it. Constraints repeat what the program checks.

-- The counter that every change of a provider, a game or a list of games takes, locked as
-- store_revision is. Not the one of customers: neither reader should wake the other.
CREATE TABLE games_revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL CHECK (revision >= 0)
);
INSERT INTO games_revision (revision) VALUES (0);

CREATE TABLE provider (
    id          text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
    name        text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    launch_url  text COLLATE "C" NOT NULL CHECK (octet_length(launch_url) BETWEEN 8 AND 1024),
    return_url  text COLLATE "C" CHECK (octet_length(return_url) BETWEEN 8 AND 1024), -- NULL: none
    audience    text COLLATE "C" NOT NULL CHECK (octet_length(audience) BETWEEN 1 AND 256),
    secret      bytea NOT NULL CHECK (octet_length(secret) BETWEEN 29 AND 540), -- sealed
    enabled     boolean NOT NULL,
    created_ms  bigint NOT NULL,
    revision    bigint NOT NULL,
    launch_call boolean NOT NULL -- launch_url is an endpoint that is called
);

CREATE TABLE game (
    id            text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
    provider_id   text COLLATE "C" NOT NULL REFERENCES provider (id),
    name          text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 128),
    category      text COLLATE "C" NOT NULL CHECK (octet_length(category) BETWEEN 1 AND 64),
    features      text COLLATE "C" NOT NULL, -- lists: one item a line, in the order given
    rtp_bps       integer CHECK (rtp_bps BETWEEN 0 AND 10000),
    volatility    text COLLATE "C" CHECK (volatility IN ('low', 'medium', 'high')),
    thumbnail_url text COLLATE "C" CHECK (octet_length(thumbnail_url) BETWEEN 8 AND 1024),
    demo          boolean NOT NULL,
    currencies    text COLLATE "C" NOT NULL,
    languages     text COLLATE "C" NOT NULL,
    devices       text COLLATE "C" NOT NULL,
    enabled       boolean NOT NULL,
    updated_ms    bigint NOT NULL,
    revision      bigint NOT NULL
);
CREATE INDEX game_by_provider ON game (provider_id, id);

-- A customer without a row may use every game (if it may use the casino at all).
CREATE TABLE customer_games (
    customer_id text COLLATE "C" PRIMARY KEY REFERENCES customer (id),
    every_game  boolean NOT NULL,
    games       text COLLATE "C" NOT NULL, -- ids, one a line, in order; "" with every_game
    revision    bigint NOT NULL,
    CHECK (NOT every_game OR games = '')
);

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

-- What was entered on a day (croupier wallet export --day). Its new rows go to its end.
CREATE INDEX ledger_entered ON ledger_transaction (created_ms, number) WHERE sequence IS NOT NULL;
