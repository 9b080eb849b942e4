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
