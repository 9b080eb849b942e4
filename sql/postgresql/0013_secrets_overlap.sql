-- A provider's secret is replaced with an overlap: `secret` is the newest and signs, `older_secret` is still good
-- until it is retired. The first secret of a provider has no kid: what it signs names no key, as ever.
ALTER TABLE provider ADD COLUMN secret_kid text COLLATE "C" CHECK (octet_length(secret_kid) = 8);
ALTER TABLE provider ADD COLUMN secret_added_ms bigint; -- NULL: not known
ALTER TABLE provider ADD COLUMN older_secret bytea CHECK (octet_length(older_secret) BETWEEN 29 AND 540);
ALTER TABLE provider ADD COLUMN older_secret_kid text COLLATE "C" CHECK (octet_length(older_secret_kid) = 8);
ALTER TABLE provider ADD COLUMN older_secret_added_ms bigint;
