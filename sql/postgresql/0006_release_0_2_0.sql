-- From 0.1.0 to 0.2.0.

-- A second record of what verify could not prove so far: the declines that are kept, and the players.

-- The declines of a player, each chained to the one before. The table ledger_transaction says what they are.
CREATE TABLE ledger_decline (
    player_number      bigint NOT NULL,
    position           bigint NOT NULL CHECK (position >= 1), -- of the player, without a gap
    transaction_number bigint NOT NULL UNIQUE, -- written before the transaction, which is refused without
    hash               bytea NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (player_number, position)
);

-- Where each player's declines have come to. Apart from ledger_account, because few have any.
CREATE TABLE ledger_declined (
    player_number bigint PRIMARY KEY REFERENCES player (number),
    declines      bigint NOT NULL CHECK (declines >= 1), -- position of the last
    head          bytea NOT NULL CHECK (octet_length(head) = 32) -- hash of the last
) WITH (fillfactor = 50);

-- One after the other, in order of decision. The text that is hashed is stores/ledger_record.c's.
DO $$
DECLARE
    one record;
    last record;
    place bigint;
    chained bytea;
BEGIN
    FOR one IN SELECT t.*, player.customer_id, player.id, player.currency, currency.exponent
               FROM ledger_transaction AS t
               LEFT JOIN player ON player.number = t.player_number
               LEFT JOIN currency ON currency.code = player.currency
               WHERE t.sequence IS NULL AND t.operation IS NOT NULL ORDER BY t.number
    LOOP
        SELECT * INTO last FROM ledger_declined WHERE ledger_declined.player_number = one.player_number;
        place := coalesce(last.declines, 0) + 1;
        chained := sha256(coalesce(last.head, decode(repeat('00', 32), 'hex')) || convert_to(
            'decline' || E'\n' || one.customer_id || E'\n' || one.id || E'\n' || place || E'\n'
            || one.transaction_id || E'\n' || one.operation || E'\n' || one.outcome || E'\n'
            || one.currency || E'\n' || one.exponent || E'\n' || one.amount_minor || E'\n'
            || coalesce(one.reference, '') || E'\n' || coalesce(one.game_id, '') || E'\n'
            || coalesce(one.round_id, '') || E'\n' || one.created_ms || E'\n', 'UTF8'));
        INSERT INTO ledger_decline VALUES (one.player_number, place, one.number, chained);
        INSERT INTO ledger_declined VALUES (one.player_number, place, chained)
        ON CONFLICT (player_number) DO UPDATE SET declines = excluded.declines, head = excluded.head;
    END LOOP;
END $$;

-- Each player as it was opened, to tell whether somebody has altered or removed one since.
CREATE TABLE player_opened (
    player_number bigint PRIMARY KEY,
    id            text COLLATE "C" NOT NULL,
    customer_id   text COLLATE "C" NOT NULL,
    reference     text COLLATE "C" NOT NULL,
    currency      text COLLATE "C" NOT NULL,
    exponent      smallint NOT NULL,
    created_ms    bigint NOT NULL
);
INSERT INTO player_opened
SELECT player.number, player.id, player.customer_id, player.reference, player.currency,
       currency.exponent, player.created_ms
FROM player JOIN currency ON currency.code = player.currency ORDER BY player.number;

CREATE FUNCTION players_are_recorded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO player_opened
    SELECT made.number, made.id, made.customer_id, made.reference, made.currency, currency.exponent,
           made.created_ms
    FROM made JOIN currency ON currency.code = made.currency ORDER BY made.number;
    RETURN NULL;
END $$;
CREATE TRIGGER players_are_recorded AFTER INSERT ON player
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION players_are_recorded();

-- A decline is chained, or nothing of the statement is written.
CREATE FUNCTION ledger_declines_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT before.position FROM ledger_decline AS before
            WHERE before.player_number = written.player_number
            AND before.position = written.position - 1 LIMIT 1) AS before ON true
        WHERE written.position > 1 AND before.position IS NULL)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a decline must follow the one before it';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_declines_fit AFTER INSERT ON ledger_decline
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION ledger_declines_fit();
CREATE TRIGGER ledger_decline_is_permanent BEFORE UPDATE OR DELETE ON ledger_decline
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_decline_is_kept BEFORE TRUNCATE ON ledger_decline
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_declined_goes_on BEFORE UPDATE ON ledger_declined FOR EACH ROW
    WHEN (NEW.declines <= OLD.declines OR NEW.player_number <> OLD.player_number)
    EXECUTE FUNCTION refuse_change('declines only follow each other');
CREATE TRIGGER ledger_declined_stays BEFORE DELETE ON ledger_declined
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER ledger_declined_is_kept BEFORE TRUNCATE ON ledger_declined
    EXECUTE FUNCTION refuse_change('the ledger is append-only');
CREATE TRIGGER player_opened_is_permanent BEFORE UPDATE OR DELETE ON player_opened
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a player is never changed');
CREATE TRIGGER player_opened_is_kept BEFORE TRUNCATE ON player_opened
    EXECUTE FUNCTION refuse_change('a player is never deleted');

-- Whether an index has what its table has: for croupier wallet verify, where amcheck may not be used. Both are
-- read from end to end, and what they hold is summed up; which of them is read, the planner is told.
CREATE FUNCTION index_has_its_table(asked oid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    of_table text;
    columns text;
    those text;
    in_table record;
    in_index record;
BEGIN
    SELECT index.indrelid::regclass::text, coalesce(pg_get_expr(index.indpred, index.indrelid), 'true'),
           (SELECT string_agg(pg_get_indexdef(asked, at, true), ', ' ORDER BY at)
            FROM generate_series(1, index.indnkeyatts) AS at)
    INTO STRICT of_table, those, columns FROM pg_index AS index WHERE index.indexrelid = asked;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
            set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    EXECUTE format('SELECT count(*) AS rows, sum(hash_record_extended(ROW(%s), 0)) AS sum'
                   ' FROM %s WHERE %s', columns, of_table, those) INTO STRICT in_table;
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
            set_config('enable_indexonlyscan', 'on', true), set_config('enable_sort', 'off', true);
    EXECUTE format('SELECT count(*) AS rows, sum(hash_record_extended(key, 0)) AS sum FROM'
                   ' (SELECT ROW(%s) AS key FROM %s WHERE %s ORDER BY %s OFFSET 0) AS ordered',
                   columns, of_table, those, columns) INTO STRICT in_index;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
            set_config('enable_sort', 'on', true);
    RETURN in_table IS NOT DISTINCT FROM in_index;
END $$;

-- The ledger's rows without a query each. What these triggers refused, the program decides while it holds the
-- player's lock, the keys refuse to whoever decided on something old, and `croupier wallet verify` proves.
DROP TRIGGER ledger_transactions_fit ON ledger_transaction;
DROP FUNCTION ledger_transactions_fit();
DROP TRIGGER ledger_accounts_begin_right ON ledger_account;
DROP TRIGGER ledger_accounts_fit ON ledger_account;
DROP FUNCTION ledger_accounts_fit();

-- A decline is chained, or it is not written: asked of declines alone.
CREATE FUNCTION ledger_decline_is_chained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger_decline AS chained
                   WHERE chained.transaction_number = NEW.number
                   AND chained.player_number = NEW.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a decline must be chained';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_decline_is_chained AFTER INSERT ON ledger_transaction FOR EACH ROW
    WHEN (NEW.sequence IS NULL AND NEW.operation IS NOT NULL)
    EXECUTE FUNCTION ledger_decline_is_chained();

-- What tells ids apart comes first, so that nearly every comparison on the way through the index is one.
ALTER TABLE ledger_transaction
    DROP CONSTRAINT ledger_transaction_customer_number_transaction_id_late_key,
    ADD UNIQUE (transaction_id, customer_number, late);
DROP INDEX ledger_credit;
CREATE INDEX ledger_credit ON ledger_transaction (reference, customer_number)
    WHERE operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL;

-- Launches: who was sent to which game, and under which name its provider knows the player.
--
-- What a provider may ask of a player's money rests on them, years later too (a CREDIT needs no
-- fresh launch), so rows are never changed and never deleted. They take no revision: nobody keeps a
-- copy of them.

CREATE TABLE launch (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in order of creation
    id          text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    customer_id text COLLATE "C" NOT NULL REFERENCES customer (id),
    player_id   text COLLATE "C" REFERENCES player (id), -- NULL: in demo, where there is no player
    provider_id text COLLATE "C" NOT NULL REFERENCES provider (id),
    subject     text COLLATE "C" NOT NULL CHECK (octet_length(subject) = 22), -- the provider's own id of the player
    game_id     text COLLATE "C" NOT NULL REFERENCES game (id),
    created_ms  bigint NOT NULL
);
CREATE INDEX launch_by_subject ON launch (provider_id, subject) WHERE player_id IS NOT NULL;
CREATE INDEX launch_by_player ON launch (player_id) WHERE player_id IS NOT NULL;

CREATE TRIGGER launch_is_permanent BEFORE UPDATE ON launch
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a launch is never changed');
CREATE TRIGGER launch_stays BEFORE DELETE ON launch
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a launch is never deleted');
CREATE TRIGGER launch_is_kept BEFORE TRUNCATE ON launch
    EXECUTE FUNCTION refuse_change('a launch is never deleted');

-- Who changed what: a row for each change of a record, written in the transaction of the change.
--
-- Columns that hold secrets are named in `before` and `after` and their values are not. Rows are only
-- ever added (src/records/trail.h).

-- The counter that gives the numbers of the rows, in the order of commits and without a gap: whoever
-- adds one holds its row until the commit.
CREATE TABLE audit_revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL CHECK (revision >= 0)
);
INSERT INTO audit_revision (revision) VALUES (0);

CREATE TABLE audit_trail (
    number  bigint PRIMARY KEY CHECK (number > 0),
    at_ms   bigint NOT NULL,
    who     text COLLATE "C" NOT NULL CHECK (octet_length(who) BETWEEN 1 AND 128),
    command text COLLATE "C" NOT NULL CHECK (octet_length(command) <= 64), -- "customer set"
    kind    text COLLATE "C" NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 32), -- "customer"
    object  text COLLATE "C" NOT NULL CHECK (octet_length(object) BETWEEN 1 AND 128), -- its id
    before  text COLLATE "C" CHECK (before IS NULL OR before::json IS NOT NULL), -- NULL: it was added
    after   text COLLATE "C" NOT NULL CHECK (after::json IS NOT NULL)
);

CREATE TRIGGER audit_trail_is_permanent BEFORE UPDATE OR DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the audit trail is append-only');
CREATE TRIGGER audit_trail_is_kept BEFORE TRUNCATE ON audit_trail
    EXECUTE FUNCTION refuse_change('the audit trail is append-only');

CREATE FUNCTION audit_trail_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> 1 + coalesce((SELECT max(number) FROM audit_trail), 0) THEN
        RAISE EXCEPTION USING MESSAGE = 'the audit trail has no gap', ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_trail_follows BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_trail_follows();

-- Players who are blocked: no bet of theirs is taken and no game is launched for their money. A row is
-- there as long as the player is blocked; what was before, the audit says.
CREATE TABLE player_block (
    player_number bigint PRIMARY KEY REFERENCES player (number),
    blocked_ms    bigint NOT NULL CHECK (blocked_ms > 0)
);

-- How many requests each customer made: by day, by group of routes, by class of the answers' status. Servers add
-- to it once a minute. Nothing refers to these rows: an operator may delete those of days no longer wanted.
CREATE TABLE usage_requests (
    day         bigint NOT NULL, -- UTC, since 1970-01-01
    customer_id text COLLATE "C" NOT NULL, -- '': of those that a server could not tell apart
    route_group text COLLATE "C" NOT NULL,
    answers_2xx bigint NOT NULL CHECK (answers_2xx >= 0),
    answers_3xx bigint NOT NULL CHECK (answers_3xx >= 0),
    answers_4xx bigint NOT NULL CHECK (answers_4xx >= 0),
    answers_5xx bigint NOT NULL CHECK (answers_5xx >= 0),
    PRIMARY KEY (day, customer_id, route_group)
);

-- A provider's secret is replaced with an overlap: `secret` is the newest and signs, `older_secret` is still good
-- until it is retired. The first secret of a provider has no kid: what it signs names no key, as ever.
ALTER TABLE provider ADD COLUMN secret_kid text COLLATE "C" CHECK (octet_length(secret_kid) = 8);
ALTER TABLE provider ADD COLUMN secret_added_ms bigint; -- NULL: not known
ALTER TABLE provider ADD COLUMN older_secret bytea CHECK (octet_length(older_secret) BETWEEN 29 AND 540);
ALTER TABLE provider ADD COLUMN older_secret_kid text COLLATE "C" CHECK (octet_length(older_secret_kid) = 8);
ALTER TABLE provider ADD COLUMN older_secret_added_ms bigint;

-- Money that a provider of games moves for a player that was launched with it.
--
-- An id is its owner's: a customer's, or a provider's, which then is a negative number. So keys, marks and
-- references say of both kinds of owner what they said of customers, and no row that is there changes. The
-- player says which customer's money it is.

ALTER TABLE provider ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY UNIQUE;
-- Where a provider's calls may come from, as of customers; '': from anywhere.
ALTER TABLE provider ADD COLUMN cidrs text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE ledger_transaction RENAME COLUMN customer_number TO owner_number;
ALTER TABLE ledger_transaction
    ADD COLUMN launch_id text COLLATE "C" CHECK (octet_length(launch_id) BETWEEN 5 AND 23);
ALTER TABLE ledger_rollback RENAME COLUMN customer_number TO owner_number;

-- As before, but for the name of that column.
CREATE OR REPLACE FUNCTION ledger_rollbacks_fit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT undo.number FROM ledger_transaction AS undo
            WHERE undo.number = written.transaction_number
            AND undo.operation = 'ROLLBACK' AND undo.sequence IS NOT NULL
            AND undo.owner_number = written.owner_number
            AND undo.player_number = written.player_number
            AND undo.reference = written.target_id LIMIT 1) AS undo ON true
        LEFT JOIN LATERAL (
            SELECT target.player_number FROM ledger_transaction AS target
            WHERE target.owner_number = written.owner_number
            AND target.transaction_id = written.target_id
            AND NOT target.late LIMIT 1) AS target ON true
        WHERE undo.number IS NULL OR target.player_number IS DISTINCT FROM written.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a rollback must be of an id of its player';
    END IF;
    RETURN NULL;
END $$;

-- What a key may less than its customer: only some of the routes, only from some of the addresses.
ALTER TABLE api_key
    ADD COLUMN scope text COLLATE "C" CHECK (scope IN ('sports', 'casino')), -- NULL: as its customer
    ADD COLUMN cidrs text COLLATE "C" NOT NULL DEFAULT ''; -- as a customer's; empty: as its customer

-- Who may use the operator's console, and what they sign in with. Rows are never deleted: a removed operator and a
-- link that was used stay, marked. Both take their numbers from store_revision.
CREATE TABLE console_operator (
    name       text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 32),
    role       text COLLATE "C" NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    enabled    boolean NOT NULL,
    removed    boolean NOT NULL,
    created_ms bigint NOT NULL,
    revision   bigint NOT NULL UNIQUE
);

-- Links that sign in once (lnk_*) and sessions (ses_*).
CREATE TABLE operator_credential (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    operator_name text COLLATE "C" NOT NULL REFERENCES console_operator (name),
    digest        bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the whole secret
    address       text COLLATE "C" NOT NULL, -- that a session was signed in from; else empty
    created_ms    bigint NOT NULL,
    expires_ms    bigint NOT NULL CHECK (expires_ms > 0),
    ended_ms      bigint CHECK (ended_ms > 0), -- NULL: neither used up nor signed out
    revision      bigint NOT NULL UNIQUE
);

-- How the last proof of the ledger ended, of the whole and of what was recent: for whoever watches. The proof itself is
-- in no row; these may be deleted.
CREATE TABLE ledger_verification (
    scope      text COLLATE "C" PRIMARY KEY CHECK (scope IN ('whole', 'recent')),
    started_ms bigint NOT NULL,
    ended_ms   bigint NOT NULL,
    since_ms   bigint NOT NULL, -- of the recent: from when on; else 0
    sound      boolean NOT NULL,
    entries    bigint NOT NULL CHECK (entries >= 0), -- that were proved
    players    bigint NOT NULL CHECK (players >= 0),
    reason     text COLLATE "C" NOT NULL -- what is broken; '': nothing
);

-- Links and sessions that ended long ago are deleted, and the list of sessions begins at those that are live. (They
-- are the only rows that are ever deleted: the audit trail keeps what was done.)
CREATE INDEX operator_credential_end ON operator_credential (expires_ms, number);
