-- How the last proof of the ledger ended, of the whole and of what was recent: for whoever watches. The proof itself is
-- in no row; these may be deleted.
CREATE TABLE ledger_verification (
    scope      TEXT PRIMARY KEY CHECK (scope IN ('whole', 'recent')),
    started_ms INTEGER NOT NULL,
    ended_ms   INTEGER NOT NULL,
    since_ms   INTEGER NOT NULL, -- of the recent: from when on; else 0
    sound      INTEGER NOT NULL CHECK (sound IN (0, 1)),
    entries    INTEGER NOT NULL CHECK (entries >= 0), -- that were proved
    players    INTEGER NOT NULL CHECK (players >= 0),
    reason     TEXT NOT NULL -- what is broken; '': nothing
) STRICT, WITHOUT ROWID;
