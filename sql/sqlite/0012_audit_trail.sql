-- Who changed what: a row for each change of a record, written in the transaction of the change.
--
-- Columns that hold secrets are named in `before` and `after` and their values are not. Rows are only
-- ever added (src/records/trail.h).

-- The counter that gives the numbers of the rows, in the order of commits and without a gap.
CREATE TABLE audit_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO audit_revision (one, revision) VALUES (1, 0);

CREATE TABLE audit_trail (
    number  INTEGER PRIMARY KEY CHECK (number > 0),
    at_ms   INTEGER NOT NULL,
    who     TEXT NOT NULL CHECK (length(CAST(who AS BLOB)) BETWEEN 1 AND 128),
    command TEXT NOT NULL CHECK (length(CAST(command AS BLOB)) <= 64), -- "customer set"
    kind    TEXT NOT NULL CHECK (length(CAST(kind AS BLOB)) BETWEEN 1 AND 32), -- "customer"
    object  TEXT NOT NULL CHECK (length(CAST(object AS BLOB)) BETWEEN 1 AND 128), -- its id
    before  TEXT CHECK (substr(before, 1, 1) = '{'), -- JSON of what changed; NULL: it was added
    after   TEXT NOT NULL CHECK (substr(after, 1, 1) = '{')
) STRICT;

CREATE TRIGGER audit_trail_is_permanent BEFORE UPDATE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_trail_stays BEFORE DELETE ON audit_trail
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_trail_follows BEFORE INSERT ON audit_trail
WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM audit_trail), 0)
BEGIN SELECT RAISE(ABORT, 'the audit trail has no gap'); END;
