-- The times of all calls in a list, the latest first.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost. Returns 1 if the call passes, and how many more would.
local now, count, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and tonumber(oldest) <= now - period do
  redis.call('RPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
local used = redis.call('LLEN', KEYS[1])
if used + cost > count then
  return {0, count - used}
end
for _ = 1, cost do
  redis.call('LPUSH', KEYS[1], now)
end
redis.call('PEXPIRE', KEYS[1], period + 60000)
return {1, count - used - cost}
