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
