-- Providers whose launch endpoint is called: launch_url is then that endpoint, which answers a signed
-- JSON document with the URL of the game, and no place to send players to.
ALTER TABLE provider ADD COLUMN launch_call INTEGER NOT NULL DEFAULT 0 CHECK (launch_call IN (0, 1));
