-- Who may use the operator's console, and what they sign in with. Rows are never deleted: a removed operator and a
-- link that was used stay, marked. Both take their numbers from store_revision.
CREATE TABLE console_operator (
    name       TEXT PRIMARY KEY CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 32),
    role       TEXT NOT NULL CHECK (role IN ('reader', 'operator', 'owner')),
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed    INTEGER NOT NULL CHECK (removed IN (0, 1)),
    created_ms INTEGER NOT NULL,
    revision   INTEGER NOT NULL UNIQUE
) STRICT;

-- Links that sign in once (lnk_*) and sessions (ses_*).
CREATE TABLE operator_credential (
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    operator_name TEXT NOT NULL REFERENCES console_operator (name),
    digest        BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole secret
    address       TEXT NOT NULL, -- that a session was signed in from; else empty
    created_ms    INTEGER NOT NULL,
    expires_ms    INTEGER NOT NULL CHECK (expires_ms > 0),
    ended_ms      INTEGER CHECK (ended_ms > 0), -- NULL: neither used up nor signed out
    revision      INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX operator_credential_open ON operator_credential (number) WHERE ended_ms IS NULL;
