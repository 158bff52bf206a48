-- A counter for each window of the clock, in a key of its own. Times are the caller's, and only how long keys live is real.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost. Returns 1 if the call passes, and how many more would.
local now, count, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local key = KEYS[1] .. ':' .. math.floor(now / period)
local used = tonumber(redis.call('GET', key) or 0)
if used + cost > count then
  return {0, count - used}
end
redis.call('INCRBY', key, cost)
redis.call('PEXPIRE', key, period + 60000)
return {1, count - used - cost}
