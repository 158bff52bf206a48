-- A field for each sub-window; the last so many count.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost, sub-windows. Returns 1 if the call passes, and how many more would.
local now, count, period, cost, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local newest, used = math.floor(now * n / period), 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if tonumber(fields[i]) <= newest - n then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    used = used + tonumber(fields[i + 1])
  end
end
if used + cost > count then
  return {0, count - used}
end
redis.call('HINCRBY', KEYS[1], newest, cost)
redis.call('PEXPIRE', KEYS[1], period + 60000)
return {1, count - used - cost}
