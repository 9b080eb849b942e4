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

-- ---- launches ----

-- The player that the provider $1 knows as $2, and the launch $3 if it is one of that player's.
-- field launched
SELECT known.player_id, launch.game_id, launch.created_ms
FROM (SELECT player_id FROM launch WHERE provider_id = $1 AND subject = $2
  AND player_id IS NOT NULL LIMIT 1) AS known
LEFT JOIN launch ON launch.id = $3 AND launch.provider_id = $1
  AND launch.player_id = known.player_id
