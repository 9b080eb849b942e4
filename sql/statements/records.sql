-- Statements of other tables than the ledger's that both engines understand. Those of a table of columns
-- (src/records/record.h) are made by src/stores/platform/statements.c.

-- ---- usage ----

-- Adds to what is stored.
-- field add_usage
INSERT INTO usage_requests (customer_id, day, route_group, answers_2xx, answers_3xx, answers_4xx,
  answers_5xx) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (customer_id, day, route_group) DO UPDATE SET
  answers_2xx = usage_requests.answers_2xx + excluded.answers_2xx,
  answers_3xx = usage_requests.answers_3xx + excluded.answers_3xx,
  answers_4xx = usage_requests.answers_4xx + excluded.answers_4xx,
  answers_5xx = usage_requests.answers_5xx + excluded.answers_5xx

-- define USAGE_OF_DAYS
SELECT customer_id, day, route_group, answers_2xx, answers_3xx, answers_4xx, answers_5xx,
  coalesce((SELECT name FROM customer WHERE id = customer_id), '')
FROM usage_requests WHERE day >= $1 AND day <= $2
-- field usage
{USAGE_OF_DAYS} ORDER BY customer_id, day, route_group
-- field usage_of_customer
{USAGE_OF_DAYS} AND customer_id = $3 ORDER BY customer_id, day, route_group

-- ---- conduct ----

-- field add_conduct
INSERT INTO conduct_fact (caller, request_id, reason, from_ms, until_ms, act, status, wanted_s, waited_ms, pause_s,
  connection, names_tag, ends_round, client, subject, content, reference, player, round, lost)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)

-- Leaves the newest $2.
-- field trim_conduct
DELETE FROM conduct_fact WHERE caller = $1 AND number <=
  (SELECT number FROM conduct_fact WHERE caller = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)

-- ---- keys ----

-- The key $1 and those that it made, as far as they are live at $2.
-- field live_keys
SELECT id FROM api_key WHERE (id = $1 OR maker = $1)
AND customer_id = (SELECT customer_id FROM api_key WHERE id = $1)
AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > $2) ORDER BY number

-- field revoke_key
UPDATE api_key SET revoked_ms = $2, revision = (SELECT revision FROM store_revision)
WHERE id = $1 AND revoked_ms IS NULL

-- field touch_key
UPDATE api_key SET last_used_ms = $2 WHERE digest = $1 AND coalesce(last_used_ms, 0) < $2

-- ---- games ----

-- field set_game
UPDATE game SET enabled = $2, blocked_countries = $3, updated_ms = $4,
  revision = (SELECT revision FROM games_revision)
WHERE id = $1 AND revision = CAST($5 AS bigint)

-- ---- players ----

-- field add_currency
INSERT INTO currency (code, exponent, created_ms) VALUES ($1, $2, $3) ON CONFLICT (code) DO NOTHING

-- $8 and $9 are what was read before.
-- field put_block
INSERT INTO player_block (id, player_id, customer_id, reference, blocked_ms, until_ms, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET blocked_ms = excluded.blocked_ms, until_ms = excluded.until_ms,
  reason = excluded.reason
WHERE coalesce(player_block.blocked_ms, 0) = CAST($8 AS bigint)
AND coalesce(player_block.until_ms, 0) = CAST($9 AS bigint)

-- ---- lists of players ----

-- A page's second column is the cursor of the next one, the third the end of a block.

-- The newest operations say who is active: so many rows are read, however many there are.
-- define NEWEST
(SELECT player_number, number FROM ledger_transaction ORDER BY number DESC LIMIT 2000) AS newest
-- define BLOCKED
({PLAYER_BLOCKED_UNTIL})
-- define ACTIVE
SELECT player.id, 2 * recent.number, {BLOCKED}
FROM (SELECT player_number, max(number) AS number FROM {NEWEST} GROUP BY player_number) AS recent
CROSS JOIN player WHERE player.number = recent.player_number
AND ($1 = '' OR player.customer_id = $1) AND recent.number < $2
ORDER BY recent.number DESC LIMIT $3
-- define OTHERS(whose, order)
SELECT player.id, 2 * player.number + 1, {BLOCKED} FROM player WHERE {{whose}}
AND player.number < $2 AND player.number NOT IN (SELECT player_number FROM {NEWEST})
ORDER BY {{order}} player.number DESC LIMIT $3
-- define COUNTED(from)
SELECT count(*) FROM (SELECT player.id {{from}} LIMIT 10001) AS counted

-- Of all, and of one customer, each by an index.
-- define ALL
$1 = ''
-- define FROM_ALL
FROM player WHERE {ALL}
-- define FROM_CUSTOMER
FROM player WHERE player.customer_id = $1
-- field players.count
{COUNTED(FROM_ALL)}
-- field players.first
{ACTIVE}
-- field players.rest
{OTHERS(ALL, NOTHING)}
-- field players_of_customer.count
{COUNTED(FROM_CUSTOMER)}
-- field players_of_customer.first
{ACTIVE}
-- field players_of_customer.rest
{OTHERS(OF_ONE, ORDER_OF_ONE)}

-- References have no character above 'z'.
-- define KNOWN
FROM player WHERE ($1 = '' OR player.customer_id = $1) AND player.id IN
  (SELECT id FROM player WHERE id = $2
  UNION SELECT player_id FROM launch WHERE id = $2 AND player_id IS NOT NULL
  UNION SELECT launch.player_id FROM provider CROSS JOIN launch
    WHERE launch.provider_id = provider.id AND launch.subject = $2
    AND launch.player_id IS NOT NULL)
-- define NAMED
FROM customer CROSS JOIN player WHERE player.customer_id = customer.id
AND ($1 = '' OR customer.id = $1) AND lower(player.reference) >= lower($2)
AND lower(player.reference) < lower($2) || '~'
AND player.id NOT IN (SELECT player.id {KNOWN})
-- define KNOWN_COUNT
(SELECT count(*) {KNOWN})
-- field players_found.count
SELECT {KNOWN_COUNT} + ({COUNTED(NAMED)})
-- field players_found.first
SELECT player.id, CAST($3 AS bigint) + $4 - 1, {BLOCKED} {KNOWN}
ORDER BY player.number LIMIT $4 OFFSET $3
-- field players_found.rest
SELECT player.id, CAST($3 AS bigint) + $4 - 1, {BLOCKED} {NAMED}
ORDER BY customer.id, lower(player.reference), player.number LIMIT $4
OFFSET CASE WHEN $3 > {KNOWN_COUNT} THEN $3 - {KNOWN_COUNT} ELSE 0 END

-- ---- launches ----

-- The player that the provider $1 knows as $2, and the launch $3 if it is one of that player's.
-- field launched
SELECT known.player_id, launch.game_id, launch.created_ms
FROM (SELECT player_id FROM launch WHERE provider_id = $1 AND subject = $2
  AND player_id IS NOT NULL LIMIT 1) AS known
LEFT JOIN launch ON launch.id = $3 AND launch.provider_id = $1
  AND launch.player_id = known.player_id
