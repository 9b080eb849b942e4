-- Players, and the currencies that they have money in.
--
-- One customer + reference + currency is one player, for ever: rows are never changed and never
-- deleted, and the triggers below say so to whoever tries by hand. Neither takes a revision: nobody
-- keeps a copy of them.

-- What the minor unit of a currency is worth, frozen when the currency is first used: an amount in
-- the ledger must never change its meaning, whatever a later edition of ISO 4217 says.
CREATE TABLE currency (
    code       TEXT PRIMARY KEY CHECK (code GLOB '[A-Z][A-Z][A-Z]'),
    exponent   INTEGER NOT NULL CHECK (exponent BETWEEN 0 AND 4), -- minor units are 10^-exponent
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE player (
    number      INTEGER PRIMARY KEY, -- in order of creation
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id TEXT NOT NULL REFERENCES customer (id),
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 64
                                     AND reference NOT GLOB '*[^A-Za-z0-9._:-]*'),
    currency    TEXT NOT NULL REFERENCES currency (code),
    created_ms  INTEGER NOT NULL,
    UNIQUE (customer_id, reference, currency)
) STRICT;

CREATE TRIGGER currency_is_frozen BEFORE UPDATE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency is frozen when it is first used'); END;
CREATE TRIGGER currency_stays BEFORE DELETE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency that was used stays'); END;
CREATE TRIGGER player_is_permanent BEFORE UPDATE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never changed'); END;
CREATE TRIGGER player_stays BEFORE DELETE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never deleted'); END;
