-- What a key may less than its customer: only some of the routes, only from some of the addresses.
ALTER TABLE api_key
    ADD COLUMN scope text COLLATE "C" CHECK (scope IN ('sports', 'casino')), -- NULL: as its customer
    ADD COLUMN cidrs text COLLATE "C" NOT NULL DEFAULT ''; -- as a customer's; empty: as its customer
