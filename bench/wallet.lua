-- Bets and wins of many players for wrk: every request has a transaction id that no one has used.
--
--   wrk -s wallet.lua URL -- PLAYERS-FILE SEED [BALANCE | PACED]
--
-- Each thread of wrk has a seed of its own. The file has a player's id a line. With BALANCE as third word it asks for balances instead; with PACED
-- it pauses for a millisecond after each answer. Credits refer to no debit, because connections do not keep the order between them.
local players, number, operation, threads = {}, 0, nil, 0

function setup(thread)
  thread:set("thread", threads)
  threads = threads + 1
end

function init(arguments)
  for line in io.lines(arguments[1]) do players[#players + 1] = line end
  math.randomseed(tonumber(arguments[2]) + thread)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  operation = arguments[3]
  if operation == "PACED" then
    function delay() return math.random(0, 2) end
  end
end

function request()
  local player = players[math.random(#players)]
  if operation == "BALANCE" then
    return wrk.format(nil, nil, nil, string.format('{"operation":"BALANCE","player_id":"%s"}', player))
  end
  number = number + 1
  return wrk.format(nil, nil, nil, string.format(
    '{"operation":"%s","player_id":"%s","transaction_id":"%08x%08x-%d","amount_minor":100,' ..
    '"currency":"EUR","round_id":"r-%d"}',
    number % 2 == 0 and "CREDIT" or "DEBIT", player, math.random(0, 0x7fffffff),
    math.random(0, 0x7fffffff), number, number))
end

function done(summary, latency)
  print(string.format("Tail of latency: %d us, at most %d us", latency:percentile(99.9), latency.max))
end
