-- Who changed what: a row for each change of a record, written in the transaction of the change.
--
-- Columns that hold secrets are named in `before` and `after` and their values are not. Rows are only
-- ever added (src/records/trail.h).

-- The counter that gives the numbers of the rows, in the order of commits and without a gap: whoever
-- adds one holds its row until the commit.
CREATE TABLE audit_revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL CHECK (revision >= 0)
);
INSERT INTO audit_revision (revision) VALUES (0);

CREATE TABLE audit_trail (
    number  bigint PRIMARY KEY CHECK (number > 0),
    at_ms   bigint NOT NULL,
    who     text COLLATE "C" NOT NULL CHECK (octet_length(who) BETWEEN 1 AND 128),
    command text COLLATE "C" NOT NULL CHECK (octet_length(command) <= 64), -- "customer set"
    kind    text COLLATE "C" NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 32), -- "customer"
    object  text COLLATE "C" NOT NULL CHECK (octet_length(object) BETWEEN 1 AND 128), -- its id
    before  text COLLATE "C" CHECK (before IS NULL OR before::json IS NOT NULL), -- NULL: it was added
    after   text COLLATE "C" NOT NULL CHECK (after::json IS NOT NULL)
);

CREATE TRIGGER audit_trail_is_permanent BEFORE UPDATE OR DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the audit trail is append-only');
CREATE TRIGGER audit_trail_is_kept BEFORE TRUNCATE ON audit_trail
    EXECUTE FUNCTION refuse_change('the audit trail is append-only');

CREATE FUNCTION audit_trail_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> 1 + coalesce((SELECT max(number) FROM audit_trail), 0) THEN
        RAISE EXCEPTION USING MESSAGE = 'the audit trail has no gap', ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_trail_follows BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_trail_follows();
