-- A provider's secret is replaced with an overlap: `secret` is the newest and signs, `older_secret` is still good
-- until it is retired. The first secret of a provider has no kid: what it signs names no key, as ever.
ALTER TABLE provider ADD COLUMN secret_kid TEXT CHECK (length(secret_kid) = 8);
ALTER TABLE provider ADD COLUMN secret_added_ms INTEGER; -- NULL: not known
ALTER TABLE provider ADD COLUMN older_secret BLOB CHECK (length(older_secret) BETWEEN 29 AND 540);
ALTER TABLE provider ADD COLUMN older_secret_kid TEXT CHECK (length(older_secret_kid) = 8);
ALTER TABLE provider ADD COLUMN older_secret_added_ms INTEGER;
