-- Every call is a member of a sorted set, with its time as the score.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost. Returns 1 if the call passes, and how many more would.
local now, count, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - period)
local used = redis.call('ZCARD', KEYS[1])
if used + cost > count then
  return {0, count - used}
end
for i = 1, cost do
  redis.call('ZADD', KEYS[1], now, now .. '-' .. used + i)
end
redis.call('PEXPIRE', KEYS[1], period + 60000)
return {1, count - used - cost}
