-- What a key may less than its customer: only some of the routes, only from some of the addresses.
ALTER TABLE api_key ADD COLUMN scope TEXT CHECK (scope IN ('sports', 'casino')); -- NULL: as its customer
ALTER TABLE api_key ADD COLUMN cidrs TEXT NOT NULL DEFAULT ''; -- as a customer's; empty: as its customer
