-- What Redisson's RRateLimiter does: a counter of the permits that are left, and a sorted set of those that were given out, each
-- with its time and how many they were, which a later call puts back once they are a period old.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost. Returns 1 if the call passes, and how many more would.
local now, count, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local value, permits = KEYS[1] .. ':value', KEYS[1] .. ':permits'
local left = tonumber(redis.call('GET', value) or count)
for _, given in ipairs(redis.call('ZRANGEBYSCORE', permits, 0, now - period)) do
  left = left + tonumber(string.match(given, ':(%d+)$'))
end
redis.call('ZREMRANGEBYSCORE', permits, 0, now - period)
local passed = 0
if left >= cost then
  passed, left = 1, left - cost
  redis.call('ZADD', permits, now, redis.call('INCR', KEYS[1] .. ':sequence') .. ':' .. cost)
end
redis.call('SET', value, left)
return {passed, left}
