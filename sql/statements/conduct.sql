-- How a sandbox caller ($1) behaved until $2, by its facts (src/records/conduct.h). A check is a rule of docs/interface.md,
-- docs/wallet.md or docs/providers.md; a caller that does what they say fails none.
--
-- Callers have several threads and servers, and croupier has several instances, whose clocks differ: so a request
-- counts as sent after an answer only 250 ms after it (but see WAS_AWAITED), and a rule about what a caller usually does allows for
-- exceptions.

-- define MINE(as)
conduct_fact AS {as} WHERE {as}.caller = $1
-- define LATER(one, other)
({one}.from_ms, {one}.number) > ({other}.from_ms, {other}.number)
-- define IS_UNKNOWN(as)
{as}.status IN (0, 500)

-- The request by which the same client asks for the same as f, of those that begin from `from` until before `to`.
-- define ASKED_AGAIN(from, to)
(SELECT n.request_id FROM {MINE(n)} AND n.subject = f.subject AND n.client = f.client AND n.number <> f.number
  AND n.from_ms >= {from} AND n.from_ms < {to} ORDER BY n.from_ms LIMIT 1)

-- A caller waits longer than half a second for an answer. A transaction id that comes again after a faster answer
-- comes from a caller that has read that answer, and no 250 ms are allowed.
-- define WAS_AWAITED
f.act < 3 AND f.status > 0 AND f.until_ms - f.from_ms < 500

-- Of a DEBIT, a CREDIT or a ROLLBACK without an answer, or with 500, what came of it: the same id again, or its
-- ROLLBACK.
-- define SETTLED_UNKNOWN
unknown AS (SELECT f.act, f.subject, f.content, f.request_id, f.until_ms,
    (SELECT n.number FROM {MINE(n)} AND n.act < 3
      AND (n.subject = f.subject OR n.act = 2 AND n.reference = f.subject) AND {LATER(n, f)}
      ORDER BY n.from_ms, n.number LIMIT 1) AS next
  FROM {MINE(f)} AND f.act < 3 AND {IS_UNKNOWN(f)}),
settled AS (SELECT unknown.act, unknown.until_ms AS moment, coalesce(n.request_id, unknown.request_id) AS request_id,
    n.number IS NOT NULL AS found,
    coalesce(n.subject = unknown.subject AND n.content <> unknown.content, false) AS differs,
    coalesce(n.from_ms, CAST($2 AS bigint)) - unknown.until_ms > 60000 AS late
  FROM unknown LEFT JOIN conduct_fact AS n ON n.number = unknown.next)

-- Bets that were refused for good, and the next one of the player (a provider's: of the launch) within a minute.
-- define REFUSED
refused AS (SELECT f.reason, f.request_id, f.from_ms,
    (SELECT n.number FROM {MINE(n)} AND n.act = 0 AND n.player = f.player AND n.subject <> f.subject
      AND n.from_ms > f.until_ms + 250 AND n.from_ms < f.until_ms + 60000 ORDER BY n.from_ms LIMIT 1) AS next
  FROM {MINE(f)} AND f.act = 0 AND NOT {IS_UNKNOWN(f)} AND f.reason IN ('player_blocked', 'session_expired'))

-- The last poll of the path that had ended: its answer gave a tag, or not.
-- define POLLS
polls AS (SELECT f.request_id, f.from_ms, f.names_tag,
    (SELECT b.status FROM {MINE(b)} AND b.subject = f.subject AND b.client = f.client AND b.until_ms <= f.from_ms
      AND {LATER(f, b)} ORDER BY b.from_ms DESC, b.number DESC LIMIT 1) AS status
  FROM {MINE(f)} AND f.act = 4)

-- A round is open while a bet of it is neither rolled back nor referred to by a CREDIT, and no later call ends it. A
-- round that had a CREDIT should not stay open. Of others, quiet_since_ms is NULL.
-- define OPEN_ROUNDS
played AS (SELECT f.round, max(CASE f.ends_round WHEN 1 THEN f.from_ms END) AS ended_ms,
    CASE max(CASE f.act WHEN 1 THEN 1 ELSE 0 END) WHEN 1 THEN max(f.until_ms) END AS quiet_since_ms
  FROM {MINE(f)} AND f.status = 200 AND f.act < 3 GROUP BY f.round),
rounds AS (SELECT f.request_id, f.from_ms, coalesce(played.ended_ms >= f.from_ms, false) OR EXISTS (SELECT 1
      FROM {MINE(n)} AND n.status = 200 AND n.reference = f.subject) AS ended, played.quiet_since_ms
  FROM played, {MINE(f)} AND f.act = 0 AND f.status = 200 AND f.round = played.round)

-- define BET
(SELECT max(CASE WHEN b.status = 200 AND b.until_ms <= f.from_ms + 250 THEN 1 ELSE 0 END) FROM {MINE(b)}
  AND b.act = 0 AND b.subject = f.reference AND {LATER(f, b)})
-- A win is too early where its bet is known and was not answered, or the ledger knows no bet.
-- define IS_EARLY
coalesce({BET}, CASE f.reason WHEN 'reference_not_found' THEN 0 ELSE 1 END) = 0

-- An id that was refused may stay free: whether it was taken, the ledger has said. Other content than that of an
-- attempt whose outcome was unknown is a matter of the first check.
-- define HAS_TWO_CONTENTS
f.reason = 'transaction_conflict' AND coalesce((SELECT NOT {IS_UNKNOWN(b)} AND b.content <> f.content FROM {MINE(b)}
  AND b.act < 3 AND b.subject = f.subject AND {LATER(f, b)} ORDER BY b.from_ms DESC, b.number DESC LIMIT 1), false)

-- Given up, or a 304 that did not wait as long as it was asked to.
-- define ENDED_EARLY
f.status = 0 OR f.status = 304 AND f.waited_ms + 1000 < f.wanted_s * 1000

-- A new connection is needless when a request of the client has just ended. It counts when a wait that may follow on it
-- has had time to end.
-- define IS_NEEDLESS
f.connection = 1 AND f.wanted_s = 0 AND f.until_ms < CAST($2 AS bigint) - 60000 AND EXISTS (SELECT 1 FROM {MINE(b)}
  AND b.client = f.client AND b.until_ms <= f.from_ms AND b.from_ms > f.from_ms - 5000 AND {LATER(f, b)})

-- define ONE(line, condition)
SELECT {line}, CASE WHEN {{condition}} THEN 0 ELSE 1 END, f.request_id, f.from_ms FROM {MINE(f)}

-- `good` is 0: a failure; 1: it passed; 2: it may fail once more.
-- define SEEN
seen (line, good, request_id, moment) AS (
  SELECT 1, CASE WHEN differs OR act <> 0 AND late THEN 0 ELSE 1 END, request_id, moment
    FROM settled WHERE found OR act <> 0 AND late
  UNION ALL {ONE(2, HAS_TWO_CONTENTS)} AND f.act < 3
  UNION ALL SELECT 3, CASE WHEN late THEN 0 ELSE 1 END, request_id, moment
    FROM settled WHERE act = 0 AND (found OR late)
  UNION ALL {ONE(4, IS_EARLY)} AND f.act = 1 AND f.reference <> 0 AND (f.status = 200 OR {IS_EARLY})
  UNION ALL SELECT 5, CASE WHEN again IS NULL THEN 1 ELSE 0 END, coalesce(again, request_id), until_ms
    FROM (SELECT f.request_id, f.until_ms, CASE WHEN {WAS_AWAITED}
        THEN {ASKED_AGAIN(f.until_ms, f.until_ms + f.pause_s * 1000 - 250)}
        ELSE {ASKED_AGAIN(f.until_ms + 250, f.until_ms + f.pause_s * 1000 - 250)} END AS again
      FROM {MINE(f)} AND f.pause_s > 0) AS paused
  UNION ALL SELECT 6, CASE WHEN status IS NULL THEN 2 WHEN names_tag > 0 THEN 1 ELSE 0 END, request_id, from_ms
    FROM polls WHERE coalesce(status, 200) IN (200, 304)
  UNION ALL SELECT 7, CASE WHEN again IS NULL THEN 1 ELSE 0 END, coalesce(again, request_id), until_ms
    FROM (SELECT f.request_id, f.until_ms, CASE WHEN {ENDED_EARLY}
        THEN {ASKED_AGAIN(f.until_ms, f.until_ms + 750)} END AS again
      FROM {MINE(f)} AND f.wanted_s > 0 AND (f.waited_ms > 0 OR {ENDED_EARLY})) AS waits
  UNION ALL {ONE(8, IS_NEEDLESS)} AND (f.connection = 2 OR {IS_NEEDLESS})
  UNION ALL SELECT CASE refused.reason WHEN 'player_blocked' THEN 9 ELSE 10 END,
      CASE WHEN n.reason = refused.reason THEN 0 ELSE 1 END, coalesce(n.request_id, refused.request_id),
      refused.from_ms
    FROM refused LEFT JOIN conduct_fact AS n ON n.number = refused.next
  UNION ALL {ONE(11, IS_NOT_SIGNED)}
  UNION ALL SELECT 12, CASE WHEN ended THEN 1 ELSE 0 END, request_id, from_ms
    FROM rounds WHERE ended OR quiet_since_ms < CAST($2 AS bigint) - 60000)
-- define IS_NOT_SIGNED
f.reason IN ('signature', 'timestamp', 'unknown_key_id')

-- `whom`: 0 customers, 1 providers, 2 both. Of `least` requests or more `percent` may fail.
-- define CHECKS
checks (line, name, whom, least, percent, meaning) AS (VALUES
  (1, 'unknown-outcome', 2, 0, 0, 'an unknown outcome is asked again with the same id and content'),
  (2, 'one-content', 2, 0, 0, 'no transaction id has two contents'),
  (3, 'unanswered-debit', 2, 0, 0, 'an unanswered DEBIT is retried or rolled back within a minute'),
  (4, 'win-after-bet', 2, 0, 0, 'a win is sent only after its bet was answered'),
  (5, 'retry-after', 2, 0, 0, 'a request is not sent again before Retry-After'),
  (6, 'conditional-polls', 0, 10, 10, 'polls name the tag that they know'),
  (7, 'waiting-polls', 0, 4, 50, 'a wait that ends early is not begun again at once'),
  (8, 'connections', 2, 10, 50, 'connections are kept and used again'),
  (9, 'player-blocked', 2, 0, 0, 'no bet of a player follows player_blocked'),
  (10, 'session-expired', 1, 0, 0, 'no bet of a launch follows session_expired'),
  (11, 'signatures', 1, 0, 0, 'calls are signed, with the present time'),
  (12, 'rounds', 1, 0, 0, 'a round with a win does not stay open')),
counted AS (SELECT checks.line, name, meaning, least, percent,
    sum(CASE WHEN good = 0 THEN 1 ELSE 0 END) AS bad, sum(CASE WHEN good = 1 THEN 1 ELSE 0 END) AS fine,
    sum(CASE WHEN good = 2 THEN 1 ELSE 0 END) AS allowed
  FROM checks LEFT JOIN seen ON seen.line = checks.line WHERE whom IN (2, CAST($3 AS bigint))
    AND EXISTS (SELECT 1 FROM customer WHERE id = $1 AND sandbox UNION ALL SELECT 1 FROM provider WHERE id = $1 AND sandbox)
  GROUP BY checks.line, name, meaning, least, percent),
verdict AS (SELECT line, name, meaning, fine,
    CASE WHEN bad + fine >= least AND bad > allowed + (bad + fine) * percent / 100 THEN 0 ELSE 1 END AS good
  FROM counted),
shown AS (SELECT line, good, request_id,
    row_number() OVER (PARTITION BY line, good ORDER BY max(moment) DESC, request_id DESC) AS place
  FROM seen GROUP BY line, good, request_id)
-- define AT(place)
max(CASE WHEN place = {place} THEN request_id END)

-- Names, results, meanings, and up to four requests that show it, with a space between them: that fail, else the newest.
-- field conduct
WITH {SETTLED_UNKNOWN}, {REFUSED}, {POLLS}, {OPEN_ROUNDS}, {SEEN}, {CHECKS}
SELECT name, CASE WHEN verdict.good = 0 THEN 'fail' WHEN fine > 0 THEN 'pass' ELSE 'not seen' END, meaning,
  coalesce({AT(1)}, '') || coalesce(' ' || {AT(2)}, '') || coalesce(' ' || {AT(3)}, '')
  || coalesce(' ' || {AT(4)}, ''), verdict.line
FROM verdict LEFT JOIN shown ON shown.line = verdict.line AND shown.good = verdict.good
GROUP BY verdict.line, name, verdict.good, fine, meaning
UNION ALL SELECT 'not-looked-at', CAST(sum(f.lost) AS text), 'so many requests came too fast', '', 13
FROM {MINE(f)} GROUP BY f.caller HAVING sum(f.lost) > 0
ORDER BY 5
