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

-- ---- launches ----

-- The player that the provider $1 knows as $2, and the launch $3 if it is one of that player's.
-- field launched
SELECT known.player_id, launch.game_id, launch.created_ms
FROM (SELECT player_id FROM launch WHERE provider_id = $1 AND subject = $2
  AND player_id IS NOT NULL LIMIT 1) AS known
LEFT JOIN launch ON launch.id = $3 AND launch.provider_id = $1
  AND launch.player_id = known.player_id
