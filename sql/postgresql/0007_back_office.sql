-- What a back office needs, later in 0.2.0.

-- The rest of a provider's vocabulary. Rows from before have NULL in both columns, keep their hashes and verify.
ALTER TABLE ledger_transaction
    ADD COLUMN kind text COLLATE "C" CHECK (kind IN ('promo', 'jackpot', 'adjustment')), -- of a CREDIT; NULL: a win
    ADD COLUMN round_ended smallint CHECK (round_ended = 1); -- NULL: it was not said

-- Tokens (cro_*), with which machines call the admin API. The role and the address blocks are of the token; a revoked
-- row stays.
CREATE TABLE operator_token (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23), -- the first characters of the token
    name         text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 32),
    role         text COLLATE "C" NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    digest       bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the whole token
    cidrs        text COLLATE "C" NOT NULL, -- as a customer's; empty: from anywhere
    created_ms   bigint NOT NULL,
    expires_ms   bigint CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms bigint CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   bigint CHECK (revoked_ms > 0),   -- NULL: live
    revision     bigint NOT NULL UNIQUE
);
CREATE UNIQUE INDEX operator_token_name ON operator_token (name) WHERE revoked_ms IS NULL;

-- Blocks: no bet of the player is taken and no game is launched for its money. A block is of one player, or of a
-- customer's reference in every currency, of which there need be no player yet: its id is the player's, or
-- CUSTOMER:REFERENCE; CUSTOMER/REFERENCE is the customer's own block of it. The row of a block that was taken away
-- stays and says why; what was before, the audit says.
ALTER TABLE player_block RENAME TO player_block_before;
CREATE TABLE player_block (
    id          text COLLATE "C" CHECK (id = coalesce(player_id, customer_id || ':' || reference)
                                       OR player_id IS NULL AND id = customer_id || '/' || reference),
    player_id   text COLLATE "C" REFERENCES player (id), -- NULL: every player of the reference
    customer_id text COLLATE "C" NOT NULL REFERENCES customer (id),
    reference   text COLLATE "C" NOT NULL CHECK (reference ~ '^[A-Za-z0-9._:-]{1,64}$'),
    blocked_ms  bigint CHECK (blocked_ms > 0), -- NULL: it was taken away
    until_ms    bigint CHECK (until_ms > blocked_ms), -- NULL: without an end
    reason      text COLLATE "C" NOT NULL CHECK (octet_length(reason) <= 200),
    CONSTRAINT player_block_by_id PRIMARY KEY (id)
);
INSERT INTO player_block (id, player_id, customer_id, reference, blocked_ms, until_ms, reason)
    SELECT player.id, player.id, player.customer_id, player.reference, before.blocked_ms, NULL, ''
    FROM player_block_before AS before JOIN player ON player.number = before.player_number;
DROP TABLE player_block_before;

-- The ledger with fewer and smaller indexes. Those of times and of references were a sixth of what PostgreSQL did for
-- an operation.

-- The entries of a time: rows are written in order of time, nearly, so it is enough to know which pages are of when.
DROP INDEX ledger_entered;
CREATE INDEX ledger_entered ON ledger_transaction USING brin (created_ms)
    WITH (pages_per_range = 32, autosummarize = on);

-- Which credits refer to a debit: by the debit's number, so that new rows go to the end of the index or near it. Rows
-- from before do not have that number, and are found by the reference itself.
ALTER TABLE ledger_transaction ADD COLUMN settles bigint; -- of an applied CREDIT: the number of its DEBIT
DROP INDEX ledger_credit;
CREATE INDEX ledger_credit ON ledger_transaction (settles) WHERE settles IS NOT NULL;
CREATE INDEX ledger_credit_by_reference ON ledger_transaction (reference, owner_number)
    WHERE operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL AND settles IS NULL;

-- The same checks of a row as one, which costs half, and of that only what concerns every entry: PostgreSQL reads the
-- text of a CHECK again for each statement. A trigger checks the rest, of the few rows that it concerns.
DO $$
DECLARE
    one name;
BEGIN
    FOR one IN SELECT conname FROM pg_constraint
               WHERE conrelid = 'ledger_transaction'::regclass AND contype = 'c'
    LOOP
        EXECUTE format('ALTER TABLE ledger_transaction DROP CONSTRAINT %I', one);
    END LOOP;
END $$;
ALTER TABLE ledger_transaction ADD CHECK (
    amount_minor BETWEEN 0 AND 1000000000000
    AND least(octet_length(transaction_id), octet_length(reference), octet_length(game_id), octet_length(round_id)) > 0
    AND greatest(octet_length(transaction_id), octet_length(reference), octet_length(game_id),
        octet_length(round_id)) <= 64
    AND octet_length(launch_id) BETWEEN 5 AND 23
    AND round_ended = 1
    AND CASE WHEN sequence IS NULL
        THEN num_nonnulls(movement_minor, balance_minor, hash, settles) = 0
            AND (operation IS NULL) = (outcome IS NULL)
            AND (operation IS NOT NULL OR reference IS NULL AND amount_minor = 0)
        ELSE num_nulls(operation, outcome, movement_minor, balance_minor, hash) = 0 AND NOT late AND sequence >= 1
            AND abs(movement_minor) <= 1000000000000
            AND balance_minor BETWEEN 0 AND 9007199254740991 AND octet_length(hash) = 32
            AND operation IN ('DEBIT', 'CREDIT', 'ROLLBACK') AND outcome IN ('applied', 'voided')
            AND (operation <> 'ROLLBACK' OR reference IS NOT NULL)
            AND (settles IS NULL OR operation = 'CREDIT' AND reference IS NOT NULL AND outcome = 'applied') END);

DROP TRIGGER ledger_decline_is_chained ON ledger_transaction;
DROP FUNCTION ledger_decline_is_chained();
CREATE FUNCTION ledger_rare_row_fits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (NEW.kind IS NULL OR NEW.kind IN ('promo', 'jackpot', 'adjustment'))
        OR NEW.operation IS NOT NULL AND NEW.sequence IS NULL
            AND (NEW.operation NOT IN ('DEBIT', 'CREDIT', 'ROLLBACK')
                OR NEW.outcome NOT IN ('reference_not_found', 'transaction_rolled_back', 'already_rolled_back',
                    'already_settled', 'not_rollbackable', 'insufficient_funds', 'balance_limit_exceeded')
                OR NEW.late AND NEW.outcome <> 'transaction_rolled_back'
                OR NEW.operation = 'ROLLBACK' AND NEW.reference IS NULL)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'a row of the ledger is malformed';
    END IF;
    IF NEW.sequence IS NULL AND NEW.operation IS NOT NULL
        AND NOT EXISTS (SELECT FROM ledger_decline AS chained
                        WHERE chained.transaction_number = NEW.number
                        AND chained.player_number = NEW.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a decline must be chained';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_rare_row_fits AFTER INSERT ON ledger_transaction FOR EACH ROW
    WHEN (NEW.sequence IS NULL OR NEW.kind IS NOT NULL)
    EXECUTE FUNCTION ledger_rare_row_fits();

-- Accounts likewise. A batch makes one only for a player whose row it has locked, players are never deleted, and
-- `croupier wallet verify` finds an account without entries; the foreign key cost a look at each account of a batch.
ALTER TABLE ledger_account
    DROP CONSTRAINT ledger_account_player_number_fkey,
    DROP CONSTRAINT ledger_account_balance_minor_check,
    DROP CONSTRAINT ledger_account_sequence_check,
    DROP CONSTRAINT ledger_account_head_check,
    ADD CHECK (balance_minor BETWEEN 0 AND 9007199254740991 AND sequence >= 1 AND octet_length(head) = 32);

-- The trigger of ledger_rollback looks for the ROLLBACK already.
ALTER TABLE ledger_rollback DROP CONSTRAINT ledger_rollback_transaction_number_fkey;

-- As index_has_its_table, of an index of kind brin on a time: whether it leads to all rows of each day.
CREATE FUNCTION brin_has_its_table(asked oid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    of_table text;
    time text := pg_get_indexdef(asked, 1, true);
    one record;
    found bigint;
BEGIN
    SELECT index.indrelid::regclass::text INTO STRICT of_table FROM pg_index AS index
    WHERE index.indexrelid = asked;
    PERFORM set_config('enable_bitmapscan', 'off', true);
    FOR one IN EXECUTE format('SELECT %1$s / 86400000 AS day, count(*) AS rows FROM %2$s GROUP BY 1', time, of_table)
    LOOP
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
        EXECUTE format('SELECT count(*) FROM %2$s WHERE %1$s >= $1 * 86400000 AND %1$s < ($1 + 1) * 86400000',
                       time, of_table) INTO STRICT found USING one.day;
        EXIT WHEN found <> one.rows;
    END LOOP;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
    RETURN found IS NOT DISTINCT FROM one.rows;
END $$;

-- Where a game, or every game of a provider, must not be offered: ISO 3166-1 codes separated by LF; '': nowhere.
ALTER TABLE game ADD COLUMN blocked_countries text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE provider ADD COLUMN blocked_countries text COLLATE "C" NOT NULL DEFAULT '';

-- Which provider a game belonged to: since when to provider_id, and before that as a list of [until when, provider] in
-- JSON. A game that moves to another provider takes its past entries nowhere.
ALTER TABLE game ADD COLUMN since_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE game ADD COLUMN moved text COLLATE "C" NOT NULL DEFAULT '[]';

-- Sums of entries by day, so that nobody who asks for days or for all reads every entry. Whoever asks first adds the
-- entries up to `number`, and later those after it (src/stores/platform/ledger/kept_sums.c); they can be made again from the
-- entries, and `croupier wallet verify` compares them. A batch does not touch them.
CREATE TABLE ledger_summed (
    one    smallint PRIMARY KEY CHECK (one = 1), -- there is one row
    number bigint NOT NULL CHECK (number >= 0) -- the entries up to this one are in ledger_sum
);
INSERT INTO ledger_summed VALUES (1, 0);
CREATE TABLE ledger_sum (
    day            bigint NOT NULL, -- since 1970-01-01
    customer_id    text COLLATE "C" NOT NULL,
    currency       text COLLATE "C" NOT NULL,
    provider       text COLLATE "C" NOT NULL, -- that moved the money, or that the game was of; '': none
    game           text COLLATE "C" NOT NULL, -- '': none
    operation      text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL, -- of a CREDIT, or of the one that a ROLLBACK undid; '': a win, or none
    transfer       bigint NOT NULL CHECK (transfer IN (0, 1)), -- without provider, game and round
    raised         bigint NOT NULL CHECK (raised IN (0, 1)), -- 1: of entries that raised a balance
    entries        bigint NOT NULL CHECK (entries > 0),
    movement_minor bigint NOT NULL,
    PRIMARY KEY (day, customer_id, currency, provider, game, operation, kind, transfer, raised)
);

-- The console's list of players, by customer and by the beginning of a reference.
CREATE INDEX player_of_customer ON player (customer_id, number);
CREATE INDEX player_named ON player (customer_id, lower(reference), number);

-- What a key may use: words of sports, casino, account, manage, separated by commas. Before, it was one of the first two.
ALTER TABLE api_key
    DROP CONSTRAINT api_key_scope_check,
    ADD CHECK (scope <> ''), -- NULL: sports and casino
    ADD COLUMN may_issue text COLLATE "C" CHECK (may_issue <> ''), -- what the keys that it makes may use; NULL: it makes none
    ADD COLUMN maker text COLLATE "C" REFERENCES api_key (id); -- the key that made it; NULL: an operator issued it

-- Customers and providers that try things out, with money that counts nowhere. It is switched on before the first launch or
-- player of theirs, and never off after one.
ALTER TABLE customer ADD COLUMN sandbox boolean NOT NULL DEFAULT false;
ALTER TABLE provider ADD COLUMN sandbox boolean NOT NULL DEFAULT false;
CREATE FUNCTION sandbox_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'customer' AND (EXISTS (SELECT 1 FROM player WHERE customer_id = OLD.id)
            OR EXISTS (SELECT 1 FROM launch WHERE customer_id = OLD.id))
        OR TG_TABLE_NAME = 'provider' AND (EXISTS (SELECT 1 FROM launch WHERE provider_id = OLD.id)
            OR EXISTS (SELECT 1 FROM ledger_transaction WHERE game_id IN (SELECT id FROM game WHERE provider_id = OLD.id))) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'sandbox: it can be switched only before the first launch';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER customer_keeps_its_sandbox BEFORE UPDATE OF sandbox ON customer
    FOR EACH ROW WHEN (NEW.sandbox <> OLD.sandbox) EXECUTE FUNCTION sandbox_stays();
CREATE TRIGGER provider_keeps_its_sandbox BEFORE UPDATE OF sandbox ON provider
    FOR EACH ROW WHEN (NEW.sandbox <> OLD.sandbox) EXECUTE FUNCTION sandbox_stays();

-- What was seen of each request of a sandbox caller, the newest of each; src/records/conduct.h has the values, and
-- sql/statements/conduct.sql judges them. A hash is a SipHash, 0 where there was nothing.
CREATE TABLE conduct_fact (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller     text COLLATE "C" NOT NULL, -- a customer or a provider
    request_id text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL, -- of an error
    from_ms    bigint NOT NULL,
    until_ms   bigint NOT NULL,
    act        bigint NOT NULL,
    status     bigint NOT NULL, -- 0: there was no whole answer
    wanted_s   bigint NOT NULL,
    waited_ms  bigint NOT NULL,
    pause_s    bigint NOT NULL, -- that Retry-After asked for
    connection bigint NOT NULL,
    names_tag  bigint NOT NULL,
    ends_round bigint NOT NULL,
    client     bigint NOT NULL, -- this and the next are hashes
    subject    bigint NOT NULL,
    content    bigint NOT NULL,
    reference  bigint NOT NULL,
    player     bigint NOT NULL,
    round      bigint NOT NULL,
    lost       bigint NOT NULL -- requests before it that were not looked at
);
CREATE INDEX conduct_of_caller ON conduct_fact (caller, number);
CREATE INDEX conduct_of_subject ON conduct_fact (caller, subject, from_ms);
CREATE INDEX conduct_of_reference ON conduct_fact (caller, reference);
CREATE INDEX conduct_of_time ON conduct_fact (caller, from_ms);
