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
