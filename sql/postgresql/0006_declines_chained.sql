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
CREATE FUNCTION ledger_transactions_are_chained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT chained.player_number FROM ledger_decline AS chained
            WHERE chained.transaction_number = written.number LIMIT 1) AS chained ON true
        WHERE written.sequence IS NULL AND written.operation IS NOT NULL
        AND chained.player_number IS DISTINCT FROM written.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a decline must be chained';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_transactions_are_chained AFTER INSERT ON ledger_transaction
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT
    EXECUTE FUNCTION ledger_transactions_are_chained();

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
    EXECUTE format('SELECT count(*) AS rows, sum(hashtextextended(ROW(%s)::text, 0)::numeric) AS sum'
                   ' FROM %s WHERE %s', columns, of_table, those) INTO STRICT in_table;
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
            set_config('enable_indexonlyscan', 'on', true), set_config('enable_sort', 'off', true);
    EXECUTE format('SELECT count(*) AS rows, sum(hashtextextended(key, 0)::numeric) AS sum FROM'
                   ' (SELECT ROW(%s)::text AS key FROM %s WHERE %s ORDER BY %s OFFSET 0) AS ordered',
                   columns, of_table, those, columns) INTO STRICT in_index;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
            set_config('enable_sort', 'on', true);
    RETURN in_table IS NOT DISTINCT FROM in_index;
END $$;
