-- Launches: who was sent to which game, and under which name its provider knows the player.
--
-- What a provider may ask of a player's money rests on them, years later too (a CREDIT needs no
-- fresh launch), so rows are never changed and never deleted. They take no revision: nobody keeps a
-- copy of them.

CREATE TABLE launch (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in order of creation
    id          text COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(id) BETWEEN 5 AND 23),
    customer_id text COLLATE "C" NOT NULL REFERENCES customer (id),
    player_id   text COLLATE "C" REFERENCES player (id), -- NULL: in demo, where there is no player
    provider_id text COLLATE "C" NOT NULL REFERENCES provider (id),
    subject     text COLLATE "C" NOT NULL CHECK (octet_length(subject) = 22), -- the provider's own id of the player
    game_id     text COLLATE "C" NOT NULL REFERENCES game (id),
    created_ms  bigint NOT NULL
);
CREATE INDEX launch_by_subject ON launch (provider_id, subject) WHERE player_id IS NOT NULL;
CREATE INDEX launch_by_player ON launch (player_id) WHERE player_id IS NOT NULL;

CREATE TRIGGER launch_is_permanent BEFORE UPDATE ON launch
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a launch is never changed');
CREATE TRIGGER launch_stays BEFORE DELETE ON launch
    FOR EACH ROW EXECUTE FUNCTION refuse_change('a launch is never deleted');
CREATE TRIGGER launch_is_kept BEFORE TRUNCATE ON launch
    EXECUTE FUNCTION refuse_change('a launch is never deleted');
