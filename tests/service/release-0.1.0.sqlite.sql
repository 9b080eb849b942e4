PRAGMA application_id = 1668445552;
BEGIN TRANSACTION;
CREATE TABLE api_key (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id  TEXT NOT NULL REFERENCES customer (id),
    label        TEXT NOT NULL CHECK (length(CAST(label AS BLOB)) <= 64),
    prefix       TEXT NOT NULL CHECK (length(prefix) = 8), -- of the key, to recognise it by
    digest       BLOB NOT NULL UNIQUE CHECK (length(digest) = 32), -- SHA-256 of the whole key
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER CHECK (expires_ms > 0),   -- NULL: never
    last_used_ms INTEGER CHECK (last_used_ms > 0), -- about a minute behind; takes no revision
    revoked_ms   INTEGER CHECK (revoked_ms > 0),   -- NULL: live
    revision     INTEGER NOT NULL UNIQUE
) STRICT;
INSERT INTO "api_key" VALUES(1,'key_YWw6XwpUB6sUvxmK','cus_K8ojPcWqeMTLhcDu','','crk_E2Vs',X'D34BE43E2410D78B5729C5388C0E02F3DFF03368AEC812AF20439AE21EF032C4',1795455288609,NULL,1795455289200,NULL,2);
INSERT INTO "api_key" VALUES(2,'key_NhC6zWoXFRGfwEfr','cus_NeljcW46RhJeQVOY','','crk_GF9c',X'18AFDAE1D1939B91D23F715499026AA19FB04D7EBBF987016FA0ECAA6A827B1F',1795455288702,NULL,1795455289244,NULL,4);
CREATE TABLE currency (
    code       TEXT PRIMARY KEY CHECK (code GLOB '[A-Z][A-Z][A-Z]'),
    exponent   INTEGER NOT NULL CHECK (exponent BETWEEN 0 AND 4), -- minor units are 10^-exponent
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "currency" VALUES('EUR',2,1795455289205);
INSERT INTO "currency" VALUES('JPY',0,1795455289231);
INSERT INTO "currency" VALUES('KWD',3,1795455289226);
CREATE TABLE customer (
    number              INTEGER PRIMARY KEY, -- in order of creation
    id                  TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    name                TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    casino              INTEGER NOT NULL CHECK (casino IN (0, 1)),
    sports              TEXT NOT NULL,       -- "all", "none" or "cricket,tennis"
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    cidrs               TEXT NOT NULL,       -- separated by one space; empty: denied everywhere
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT;
INSERT INTO "customer" VALUES(1,'cus_K8ojPcWqeMTLhcDu','Casino',1,1,'all',NULL,NULL,'127.0.0.0/8',1795455288560,1);
INSERT INTO "customer" VALUES(2,'cus_NeljcW46RhJeQVOY','Other',1,1,'all',NULL,NULL,'127.0.0.0/8',1795455288658,3);
CREATE TABLE customer_games (
    customer_id TEXT PRIMARY KEY REFERENCES customer (id),
    every_game  INTEGER NOT NULL CHECK (every_game IN (0, 1)),
    games       TEXT NOT NULL, -- ids, one a line, in order; "" with every_game
    revision    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE game (
    id            TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    provider_id   TEXT NOT NULL REFERENCES provider (id),
    name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    category      TEXT NOT NULL CHECK (length(CAST(category AS BLOB)) BETWEEN 1 AND 64),
    features      TEXT NOT NULL, -- lists: one item a line, in the order given
    rtp_bps       INTEGER CHECK (rtp_bps BETWEEN 0 AND 10000),
    volatility    TEXT CHECK (volatility IN ('low', 'medium', 'high')),
    thumbnail_url TEXT CHECK (length(thumbnail_url) BETWEEN 8 AND 1024),
    demo          INTEGER NOT NULL CHECK (demo IN (0, 1)),
    currencies    TEXT NOT NULL,
    languages     TEXT NOT NULL,
    devices       TEXT NOT NULL,
    enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    updated_ms    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "game" VALUES('lucky-7','acme','lucky-7','slots','',NULL,NULL,NULL,1,'EUR
JPY
KWD','','',0,1795455289042,3);
INSERT INTO "game" VALUES('roulette','acme','roulette','slots','',NULL,NULL,NULL,1,'EUR
JPY
KWD','','',1,1795455288953,2);
CREATE TABLE games_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO "games_revision" VALUES(1,3);
CREATE TABLE ledger_account (
    player_number INTEGER PRIMARY KEY REFERENCES player (number),
    balance_minor INTEGER NOT NULL CHECK (balance_minor BETWEEN 0 AND 9007199254740991),
    sequence      INTEGER NOT NULL CHECK (sequence >= 1),
    head          BLOB NOT NULL CHECK (length(head) = 32), -- hash of the last entry
    last_number   INTEGER NOT NULL REFERENCES ledger_transaction (number) -- the last entry
) STRICT;
INSERT INTO "ledger_account" VALUES(1,99656,7,X'09C24DACAAFC07433533226D3412089957DB69F700C735F7371E29914FCA84EF',9);
INSERT INTO "ledger_account" VALUES(2,7,1,X'D49E0A6C2F088E97EBBC67EE8DB4B2E03F076A2F38E4A607B4ADDC9BDB272D72',11);
INSERT INTO "ledger_account" VALUES(3,7,1,X'56C1C182A3ECB90B8AF5F190C85D5276511BD24B8735D0868BFD1BDFC381FC61',12);
INSERT INTO "ledger_account" VALUES(4,0,2,X'D950C7C2D024615E041BD5A40B8BA1EA131C19B962863AC6E15B46593E11F4CB',15);
CREATE TABLE ledger_clearing (
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    currency        TEXT NOT NULL REFERENCES currency (code),
    balance_minor   INTEGER NOT NULL CHECK (balance_minor BETWEEN -4611686018427387904 AND 0),
    PRIMARY KEY (customer_number, currency)
) STRICT, WITHOUT ROWID;
INSERT INTO "ledger_clearing" VALUES(1,'EUR',-99656);
INSERT INTO "ledger_clearing" VALUES(1,'JPY',-7);
INSERT INTO "ledger_clearing" VALUES(1,'KWD',-7);
INSERT INTO "ledger_clearing" VALUES(2,'EUR',0);
CREATE TABLE ledger_id_0 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
INSERT INTO "ledger_id_0" VALUES(129751826056445989,6);
INSERT INTO "ledger_id_0" VALUES(2797006172553359307,4);
INSERT INTO "ledger_id_0" VALUES(3435883911752956962,11);
INSERT INTO "ledger_id_0" VALUES(3886934260785624451,12);
INSERT INTO "ledger_id_0" VALUES(4310870167313710829,13);
INSERT INTO "ledger_id_0" VALUES(4804906802830642569,3);
INSERT INTO "ledger_id_0" VALUES(5626745042447569481,14);
INSERT INTO "ledger_id_0" VALUES(5983731878213780797,2);
INSERT INTO "ledger_id_0" VALUES(6906883433536600683,15);
INSERT INTO "ledger_id_0" VALUES(7095056286917943969,10);
INSERT INTO "ledger_id_0" VALUES(7210815447691637454,9);
INSERT INTO "ledger_id_0" VALUES(7770540371258953147,8);
INSERT INTO "ledger_id_0" VALUES(7851363151319331500,5);
INSERT INTO "ledger_id_0" VALUES(7928459271481388268,7);
INSERT INTO "ledger_id_0" VALUES(8694418191944828518,1);
CREATE TABLE ledger_id_1 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_2 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_3 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_4 (key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number))
    STRICT, WITHOUT ROWID;
CREATE TABLE ledger_id_level (
    level    INTEGER PRIMARY KEY CHECK (level BETWEEN 0 AND 3),
    moved    INTEGER NOT NULL, -- how many ids have left it
    next_key INTEGER NOT NULL  -- where the next to leave begin
) STRICT;
INSERT INTO "ledger_id_level" VALUES(0,0,0);
INSERT INTO "ledger_id_level" VALUES(1,0,0);
INSERT INTO "ledger_id_level" VALUES(2,0,0);
INSERT INTO "ledger_id_level" VALUES(3,0,0);
CREATE TABLE ledger_rollback (
    customer_number    INTEGER NOT NULL REFERENCES customer (number),
    target_id          TEXT NOT NULL CHECK (length(target_id) BETWEEN 1 AND 64),
    player_number      INTEGER NOT NULL REFERENCES player (number),
    transaction_number INTEGER NOT NULL REFERENCES ledger_transaction (number), -- the ROLLBACK
    PRIMARY KEY (customer_number, target_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "ledger_rollback" VALUES(1,'never',1,6);
INSERT INTO "ledger_rollback" VALUES(1,'win',1,5);
CREATE TABLE ledger_transaction (
    number          INTEGER PRIMARY KEY, -- in order of decision
    customer_number INTEGER NOT NULL REFERENCES customer (number),
    player_number   INTEGER NOT NULL REFERENCES player (number),
    sequence        INTEGER CHECK (sequence >= 1), -- of its entry, without a gap; NULL: declined
    previous        INTEGER NOT NULL, -- the number of the player's entry before; 0: there is none, or declined
    amount_minor    INTEGER NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    movement_minor  INTEGER CHECK (movement_minor BETWEEN -1000000000000 AND 1000000000000),
    balance_minor   INTEGER CHECK (balance_minor BETWEEN 0 AND 9007199254740991), -- afterwards
    created_ms      INTEGER NOT NULL,
    settles         INTEGER, -- of an applied CREDIT with a reference: the number of that DEBIT
    transaction_id  TEXT NOT NULL CHECK (length(transaction_id) BETWEEN 1 AND 64),
    operation       TEXT NOT NULL CHECK (operation = 'DEBIT' OR operation = 'CREDIT'
                                         OR operation = 'ROLLBACK'),
    outcome         TEXT NOT NULL CHECK (
                        outcome = 'applied' OR outcome = 'voided'
                        OR outcome = 'insufficient_funds' OR outcome = 'reference_not_found'
                        OR outcome = 'transaction_rolled_back' OR outcome = 'already_rolled_back'
                        OR outcome = 'already_settled' OR outcome = 'not_rollbackable'
                        OR outcome = 'balance_limit_exceeded'),
    reference       TEXT CHECK (length(reference) BETWEEN 1 AND 64),
    game            TEXT, -- its id; called so that no statement of an older program fits
    round_id        TEXT,
    hash            BLOB CHECK (length(hash) = 32), -- chained to the player's entry before
    CHECK (operation <> 'ROLLBACK' OR reference IS NOT NULL),
    CHECK (CASE WHEN outcome = 'applied' OR outcome = 'voided'
           THEN sequence IS NOT NULL AND movement_minor IS NOT NULL AND balance_minor IS NOT NULL
                AND hash IS NOT NULL
           ELSE sequence IS NULL AND movement_minor IS NULL AND balance_minor IS NULL
                AND hash IS NULL END),
    CHECK ((previous <> 0) = (sequence IS NOT NULL AND sequence > 1)),
    CHECK ((settles IS NOT NULL) =
           (operation = 'CREDIT' AND outcome = 'applied' AND reference IS NOT NULL))
) STRICT;
INSERT INTO "ledger_transaction" VALUES(1,1,1,1,0,100005,100005,100005,1795455289254,NULL,'in','CREDIT','applied',NULL,NULL,NULL,X'5C8228F020396600E3512AEA713C63DCCBDFDE97E8F739246E7C5B5C5522CC71');
INSERT INTO "ledger_transaction" VALUES(2,1,1,2,1,250,-250,99755,1795455289259,NULL,'bet','DEBIT','applied',NULL,'roulette','r 1',X'73E1469DF803417E3D88BB101627C30316F42806659D78AF2208A087D0C1C41E');
INSERT INTO "ledger_transaction" VALUES(3,1,1,3,2,500,500,100255,1795455289264,2,'win','CREDIT','applied','bet',NULL,NULL,X'50486F1F406A8992577E9191612B7832C2C51EE7B21BAA11485A41E41597373C');
INSERT INTO "ledger_transaction" VALUES(4,1,1,NULL,0,200000,NULL,NULL,1795455289270,NULL,'much','DEBIT','insufficient_funds',NULL,NULL,NULL,NULL);
INSERT INTO "ledger_transaction" VALUES(5,1,1,4,3,500,-500,99755,1795455289279,NULL,'undo','ROLLBACK','applied','win',NULL,NULL,X'F79B9D5C15ED5AB601147E54A6EF37419230422300838ACA427F806E98BD1BF8');
INSERT INTO "ledger_transaction" VALUES(6,1,1,5,5,0,0,99755,1795455289288,NULL,'void','ROLLBACK','voided','never',NULL,NULL,X'089B8018E1346B98904A2BB0C1CFCBA82C3A4E8D9D9F9D9F43533889DD980CDC');
INSERT INTO "ledger_transaction" VALUES(7,1,1,NULL,0,5,NULL,NULL,1795455289289,NULL,'late','CREDIT','reference_not_found','nothing',NULL,NULL,NULL);
INSERT INTO "ledger_transaction" VALUES(8,1,1,6,6,100,-100,99655,1795455289303,NULL,'bet-2','DEBIT','applied',NULL,'roulette','r 2',X'CCEE7C883C6D6980686A973CF4026D3CED4B4B0410CA23226CA531DC5CB72C9A');
INSERT INTO "ledger_transaction" VALUES(9,1,1,7,8,1,1,99656,1795455289311,8,'win-2','CREDIT','applied','bet-2',NULL,NULL,X'09C24DACAAFC07433533226D3412089957DB69F700C735F7371E29914FCA84EF');
INSERT INTO "ledger_transaction" VALUES(10,1,1,NULL,0,0,NULL,NULL,1795455289322,NULL,'no','ROLLBACK','already_settled','bet-2',NULL,NULL,NULL);
INSERT INTO "ledger_transaction" VALUES(11,1,2,1,0,7,7,7,1795455289330,NULL,'b1','CREDIT','applied',NULL,NULL,NULL,X'D49E0A6C2F088E97EBBC67EE8DB4B2E03F076A2F38E4A607B4ADDC9BDB272D72');
INSERT INTO "ledger_transaction" VALUES(12,1,3,1,0,7,7,7,1795455289340,NULL,'c1','CREDIT','applied',NULL,NULL,NULL,X'56C1C182A3ECB90B8AF5F190C85D5276511BD24B8735D0868BFD1BDFC381FC61');
INSERT INTO "ledger_transaction" VALUES(13,1,3,NULL,0,8,NULL,NULL,1795455289350,NULL,'c2','DEBIT','insufficient_funds',NULL,NULL,NULL,NULL);
INSERT INTO "ledger_transaction" VALUES(14,2,4,1,0,42,42,42,1795455289358,NULL,'in','CREDIT','applied',NULL,NULL,NULL,X'7E33758EC47BBA1B0F546CA026C11FB76F2BC9370F8075A41D63419003309D4F');
INSERT INTO "ledger_transaction" VALUES(15,2,4,2,14,42,-42,0,1795455289365,NULL,'bet','DEBIT','applied',NULL,NULL,NULL,X'D950C7C2D024615E041BD5A40B8BA1EA131C19B962863AC6E15B46593E11F4CB');
CREATE TABLE legacy_address (
    address             BLOB PRIMARY KEY CHECK (length(address) = 16), -- v4 as ::ffff:a.b.c.d
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed             INTEGER NOT NULL CHECK (removed IN (0, 1)),
    sports              TEXT NOT NULL,
    rate_requests       INTEGER CHECK (rate_requests BETWEEN 1 AND 1000000000),
    rate_window_seconds INTEGER CHECK (rate_window_seconds BETWEEN 1 AND 86400),
    created_ms          INTEGER NOT NULL,
    revision            INTEGER NOT NULL UNIQUE,
    CHECK ((rate_requests IS NULL) = (rate_window_seconds IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO "legacy_address" VALUES(X'00000000000000000000FFFFC0000207',1,0,'all',NULL,NULL,1795455288764,5);
CREATE TABLE player (
    number      INTEGER PRIMARY KEY, -- in order of creation
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 5 AND 23),
    customer_id TEXT NOT NULL REFERENCES customer (id),
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 64
                                     AND reference NOT GLOB '*[^A-Za-z0-9._:-]*'),
    currency    TEXT NOT NULL REFERENCES currency (code),
    created_ms  INTEGER NOT NULL,
    UNIQUE (customer_id, reference, currency)
) STRICT;
INSERT INTO "player" VALUES(1,'ply_FYAQfAi7wRDb7GLZ','cus_K8ojPcWqeMTLhcDu','alice','EUR',1795455289205);
INSERT INTO "player" VALUES(2,'ply_INVs6siI7ORACBER','cus_K8ojPcWqeMTLhcDu','bob','KWD',1795455289226);
INSERT INTO "player" VALUES(3,'ply_pWr1Vhtr48Igodzd','cus_K8ojPcWqeMTLhcDu','carol','JPY',1795455289231);
INSERT INTO "player" VALUES(4,'ply_TSmX1Zbffoobels0','cus_NeljcW46RhJeQVOY','alice','EUR',1795455289246);
CREATE TABLE provider (
    id         TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
    launch_url TEXT NOT NULL CHECK (length(launch_url) BETWEEN 8 AND 1024),
    return_url TEXT CHECK (length(return_url) BETWEEN 8 AND 1024), -- NULL: none
    audience   TEXT NOT NULL CHECK (length(audience) BETWEEN 1 AND 256),
    secret     BLOB NOT NULL CHECK (length(secret) BETWEEN 29 AND 540), -- sealed
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_ms INTEGER NOT NULL,
    revision   INTEGER NOT NULL
, launch_call INTEGER NOT NULL DEFAULT 0 CHECK (launch_call IN (0, 1))) STRICT, WITHOUT ROWID;
INSERT INTO "provider" VALUES('acme','Acme','https://acme.example/',NULL,'acme',X'FE6F8F511C90CB6F97C8BFEB1F2592D26E26943298AD909BB68C255FD6B8D8973B8921DB5681703BA89F9F0FC3ED75806448B4D36F1D20A1FA151B00',1,1795455288852,1,0);
CREATE TABLE schema_migration ( number INTEGER PRIMARY KEY CHECK (number > 0), name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT;
INSERT INTO "schema_migration" VALUES(1,'customers','d35f30abf80cd8dc2a871ace32ec8bb4ce62fc9584d7c921f902e5189f681a7e',1795455288450);
INSERT INTO "schema_migration" VALUES(2,'players','8da914be54646b77540d84a770e4515022fa2de8b92f9fd43e3d21eee47ac447',1795455288462);
INSERT INTO "schema_migration" VALUES(3,'games','106db733c02a5d8114c246a011318d89fa5a60a48f0a453de96d3f740bf3c77e',1795455288467);
INSERT INTO "schema_migration" VALUES(4,'ledger','f74c894343f90e7aca846c80c5f1bd29f374a2cc73e91384fecf6f64a20b7383',1795455288469);
INSERT INTO "schema_migration" VALUES(5,'launch_call','88d78b4cf625a08bd74c47f9f4592cb08c1dc51821f090410a6f3718f211bfa1',1795455288481);
INSERT INTO "schema_migration" VALUES(6,'ledger_in_one_table','93558cd8dc968dd0a056cc849821863daf36fb6d2b6e7a4234c3899ef03808b5',1795455288489);
INSERT INTO "schema_migration" VALUES(7,'ledger_that_does_not_slow','13009a4f476f2802741848925688260cc4467d97e1fdb88b37e13ac8435f6c4f',1795455288502);
CREATE TABLE store_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
INSERT INTO "store_revision" VALUES(1,5);
CREATE INDEX api_key_by_customer ON api_key (customer_id, number);
CREATE TRIGGER currency_is_frozen BEFORE UPDATE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency is frozen when it is first used'); END;
CREATE TRIGGER currency_stays BEFORE DELETE ON currency
BEGIN SELECT RAISE(ABORT, 'a currency that was used stays'); END;
CREATE TRIGGER player_is_permanent BEFORE UPDATE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never changed'); END;
CREATE TRIGGER player_stays BEFORE DELETE ON player
BEGIN SELECT RAISE(ABORT, 'a player is never deleted'); END;
CREATE INDEX game_by_provider ON game (provider_id, id);
CREATE TRIGGER ledger_clearing_stays BEFORE DELETE ON ledger_clearing
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE UNIQUE INDEX ledger_follows ON ledger_transaction (previous) WHERE previous <> 0;
CREATE UNIQUE INDEX ledger_by_player ON ledger_transaction (player_number, sequence)
    WHERE sequence % 256 = 1;
CREATE INDEX ledger_credit ON ledger_transaction (settles) WHERE settles IS NOT NULL;
CREATE INDEX ledger_entered ON ledger_transaction (created_ms) WHERE sequence IS NOT NULL;
CREATE TRIGGER ledger_entry_follows BEFORE INSERT ON ledger_transaction
WHEN NEW.sequence IS NOT NULL AND CASE NEW.sequence
    WHEN 1 THEN NEW.balance_minor <> NEW.movement_minor
    ELSE NOT EXISTS (SELECT 1 FROM ledger_transaction AS before
                     WHERE before.number = NEW.previous
                     AND before.player_number = NEW.player_number
                     AND before.sequence = NEW.sequence - 1
                     AND before.balance_minor = NEW.balance_minor - NEW.movement_minor) END
BEGIN SELECT RAISE(ABORT, 'a ledger entry must follow the one before it'); END;
CREATE TRIGGER ledger_id_is_new BEFORE INSERT ON ledger_id_0
WHEN EXISTS (SELECT 1 FROM (SELECT number FROM ledger_id_0 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_1 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_2 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_3 WHERE key = NEW.key
                            UNION ALL SELECT number FROM ledger_id_4 WHERE key = NEW.key) AS other
             CROSS JOIN ledger_transaction AS theirs ON theirs.number = other.number
             CROSS JOIN ledger_transaction AS ours ON ours.number = NEW.number
             WHERE ours.customer_number = theirs.customer_number
             AND ours.transaction_id = theirs.transaction_id)
BEGIN SELECT RAISE(ABORT, 'a transaction id is used once'); END;
CREATE TRIGGER ledger_transaction_is_permanent BEFORE UPDATE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transaction_stays BEFORE DELETE ON ledger_transaction
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_is_permanent BEFORE UPDATE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_rollback_stays BEFORE DELETE ON ledger_rollback
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_account_goes_on BEFORE UPDATE ON ledger_account
WHEN NEW.sequence <= OLD.sequence OR NEW.player_number <> OLD.player_number
BEGIN SELECT RAISE(ABORT, 'an account only follows its entries'); END;
CREATE TRIGGER ledger_account_stays BEFORE DELETE ON ledger_account
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_0_is_permanent BEFORE UPDATE ON ledger_id_0
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_is_permanent BEFORE UPDATE ON ledger_id_1
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_2_is_permanent BEFORE UPDATE ON ledger_id_2
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_3_is_permanent BEFORE UPDATE ON ledger_id_3
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_4_is_permanent BEFORE UPDATE ON ledger_id_4
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_0_moves_on BEFORE DELETE ON ledger_id_0
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_1 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_moves_on BEFORE DELETE ON ledger_id_1
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_2 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_2_moves_on BEFORE DELETE ON ledger_id_2
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_3 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_3_moves_on BEFORE DELETE ON ledger_id_3
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_4 AS next WHERE next.key = OLD.key AND next.number = OLD.number)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_4_stays BEFORE DELETE ON ledger_id_4
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_id_1_is_known BEFORE INSERT ON ledger_id_1
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_0 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_2_is_known BEFORE INSERT ON ledger_id_2
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_1 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_3_is_known BEFORE INSERT ON ledger_id_3
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_2 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_4_is_known BEFORE INSERT ON ledger_id_4
WHEN NOT EXISTS (SELECT 1 FROM ledger_id_3 AS before WHERE before.key = NEW.key AND before.number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an id comes from the level before'); END;
CREATE TRIGGER ledger_id_level_stays BEFORE DELETE ON ledger_id_level
BEGIN SELECT RAISE(ABORT, 'the levels of ids stay'); END;
COMMIT;
