-- Game providers, their games, and which games a customer may use.
--
-- Rows are never deleted. A provider's secret is kept sealed (casino/secrets.h): whoever reads this
-- file without the key file learns nothing of it. Constraints repeat what the program checks.

-- The counter that every change of a provider, a game or a list of games takes. Not the one of
-- customers: neither reader should wake the other.
CREATE TABLE games_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO games_revision (one, revision) VALUES (1, 0);

CREATE TABLE provider (
    id         TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    launch_url TEXT NOT NULL CHECK (length(launch_url) BETWEEN 8 AND 1024),
    return_url TEXT CHECK (length(return_url) BETWEEN 8 AND 1024), -- NULL: none
    audience   TEXT NOT NULL CHECK (length(audience) BETWEEN 1 AND 256),
    secret     BLOB NOT NULL CHECK (length(secret) BETWEEN 29 AND 540), -- sealed
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_ms INTEGER NOT NULL,
    revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE game (
    id            TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    provider_id   TEXT NOT NULL REFERENCES provider (id),
    name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    category      TEXT NOT NULL CHECK (length(CAST(category AS BLOB)) BETWEEN 1 AND 64),
    features      TEXT NOT NULL, -- lists: one item a line, in the order given
    rtp_bps       INTEGER CHECK (rtp_bps BETWEEN 0 AND 10000),
    volatility    TEXT CHECK (volatility IN ('low', 'medium', 'high')),
    thumbnail_url TEXT CHECK (length(thumbnail_url) BETWEEN 8 AND 1024),
    demo          INTEGER NOT NULL CHECK (demo IN (0, 1)),
    currencies    TEXT NOT NULL,
    languages     TEXT NOT NULL,
    devices       TEXT NOT NULL,
    enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    updated_ms    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX game_by_provider ON game (provider_id, id);

-- A customer without a row may use every game (if it may use the casino at all).
CREATE TABLE customer_games (
    customer_id TEXT PRIMARY KEY REFERENCES customer (id),
    every_game  INTEGER NOT NULL CHECK (every_game IN (0, 1)),
    games       TEXT NOT NULL, -- ids, one a line, in order; "" with every_game
    revision    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
