-- How the last proof of the ledger ended, of the whole and of what was recent: for whoever watches. The proof itself is
-- in no row; these may be deleted.
CREATE TABLE ledger_verification (
    scope      text COLLATE "C" PRIMARY KEY CHECK (scope IN ('whole', 'recent')),
    started_ms bigint NOT NULL,
    ended_ms   bigint NOT NULL,
    since_ms   bigint NOT NULL, -- of the recent: from when on; else 0
    sound      boolean NOT NULL,
    entries    bigint NOT NULL CHECK (entries >= 0), -- that were proved
    players    bigint NOT NULL CHECK (players >= 0),
    reason     text COLLATE "C" NOT NULL -- what is broken; '': nothing
);
