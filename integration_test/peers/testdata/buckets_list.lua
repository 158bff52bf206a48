-- A list of sub-windows that were called in, the newest first: number, count, number, count …
-- KEYS: key; ARGV: now in ms, count, period in ms, cost, sub-windows. Returns 1 if the call passes, and how many more would.
local now, count, period, cost, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local newest, used = math.floor(now * n / period), 0
local list = redis.call('LRANGE', KEYS[1], 0, -1)
for i = 1, #list, 2 do
  if tonumber(list[i]) <= newest - n then
    redis.call('LTRIM', KEYS[1], 0, i - 2)
    break
  end
  used = used + tonumber(list[i + 1])
end
if used + cost > count then
  return {0, count - used}
end
if list[1] == tostring(newest) then
  redis.call('LSET', KEYS[1], 1, tonumber(list[2]) + cost)
else
  redis.call('LPUSH', KEYS[1], cost, newest)
end
redis.call('PEXPIRE', KEYS[1], period + 60000)
return {1, count - used - cost}
