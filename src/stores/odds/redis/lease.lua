-- A lease of a rate budget (lease.c). KEYS: the budget's. ARGV: window in seconds, limit, demand, and
-- the caller's knowledge: the start of a window, the units drawn in it, and the units that it has
-- admitted in it without the store.
local time = redis.call('TIME')
local second, window, limit = tonumber(time[1]), tonumber(ARGV[1]), tonumber(ARGV[2])
local start = second - second % window
local held = redis.call('GET', KEYS[1]) or ''
local since, used = string.match(held, '^(%d+):(%d+)$')
since, used = tonumber(since), tonumber(used)
if not since or since < start or since > second + 2 then since, used = start, 0 end
if tonumber(ARGV[4]) == since then
  used = math.max(used, tonumber(ARGV[5])) + tonumber(ARGV[6])
end
local left = limit - used
local share = math.min(math.ceil(limit / 16), math.ceil(left / 4))
local granted = math.max(0, math.min(left, math.max(share, tonumber(ARGV[3]))))
local left_us = (start + window - second) * 1000000 - tonumber(time[2])
redis.call('SET', KEYS[1], string.format('%.0f:%.0f', since, used + granted),
  'PX', math.floor(left_us / 1000) + 3000)
local now_ms = second * 1000 + math.floor(tonumber(time[2]) / 1000)
return {granted, left - granted, since, left_us, now_ms}
