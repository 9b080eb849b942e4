-- Customers, their keys, and legacy address policies.
--
-- Rows are never deleted: a revoked key and a removed address stay, marked, so that "what changed
-- since revision R" (stores/platform_store.h) is a range scan that misses nothing. Times are
-- milliseconds since the Unix epoch. Constraints repeat what the program checks, so that a row
-- written by hand is refused as well.

-- The one counter that every change of a customer, key or address takes its number from.
CREATE TABLE store_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO store_revision (one, revision) VALUES (1, 0);

CREATE TABLE customer (
    number              INTEGER PRIMARY KEY, -- in order of creation
    id                  TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    name                TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    casino              INTEGER NOT NULL CHECK (casino IN (0, 1)),
    sports              TEXT NOT NULL,       -- "all", "none" or "cricket,tennis"
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    cidrs               TEXT NOT NULL,       -- separated by one space; empty: denied everywhere
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT;

CREATE TABLE api_key (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id  TEXT NOT NULL REFERENCES customer (id),
    label        TEXT NOT NULL CHECK (length(CAST(label AS BLOB)) <= 64),
    prefix       TEXT NOT NULL CHECK (length(prefix) = 8), -- of the key, to recognise it by
    digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole key
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms INTEGER CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   INTEGER CHECK (revoked_ms > 0),   -- NULL: live
    revision     INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX api_key_by_customer ON api_key (customer_id, number);

CREATE TABLE legacy_address (
    address             BLOB PRIMARY KEY CHECK (length(address) = 16), -- v4 as ::ffff:a.b.c.d
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed             INTEGER NOT NULL CHECK (removed IN (0, 1)),
    sports              TEXT NOT NULL,
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT, WITHOUT ROWID;
