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
CREATE INDEX operator_credential_open ON operator_credential (number) WHERE ended_ms IS NULL;
