-- Launches: who was sent to which game, and under which name its provider knows the player.
--
-- What a provider may ask of a player's money rests on them, years later too (a CREDIT needs no
-- fresh launch), so rows are never changed and never deleted. They take no revision: nobody keeps a
-- copy of them.

CREATE TABLE launch (
    number      INTEGER PRIMARY KEY, -- in order of creation
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id TEXT NOT NULL REFERENCES customer (id),
    player_id   TEXT REFERENCES player (id), -- NULL: in demo, where there is no player
    provider_id TEXT NOT NULL REFERENCES provider (id),
    subject     TEXT NOT NULL CHECK (length(subject) = 22), -- the provider's own id of the player
    game_id     TEXT NOT NULL REFERENCES game (id),
    created_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX launch_by_subject ON launch (provider_id, subject) WHERE player_id IS NOT NULL;
CREATE INDEX launch_by_player ON launch (player_id) WHERE player_id IS NOT NULL;

CREATE TRIGGER launch_is_permanent BEFORE UPDATE ON launch
BEGIN SELECT RAISE(ABORT, 'a launch is never changed'); END;
CREATE TRIGGER launch_stays BEFORE DELETE ON launch
BEGIN SELECT RAISE(ABORT, 'a launch is never deleted'); END;
