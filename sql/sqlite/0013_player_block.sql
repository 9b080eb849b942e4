-- Players who are blocked: no bet of theirs is taken and no game is launched for their money. A row is
-- there as long as the player is blocked; what was before, the audit says.
CREATE TABLE player_block (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    blocked_ms    INTEGER NOT NULL CHECK (blocked_ms > 0)
) STRICT;
