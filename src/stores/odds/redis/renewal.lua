-- Gives the value KEYS[1] a new end, in ARGV[2] milliseconds, if its SHA-1 is still ARGV[1] (feed.c).
-- A script, so that no other feed's value comes between the look at the value and its new time.
if redis.call('PTTL', KEYS[1]) > 0 and redis.sha1hex(redis.call('GET', KEYS[1])) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
