-- A token bucket whose tokens may be taken before they are there: whoever takes them waits until they would be.
-- KEYS: key; ARGV: now in µs, interval in µs, the longest wait in µs, capacity, cost. Returns how long to wait, or -1.
-- A token is kept as the time that it takes to come.
local now, interval, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local capacity, cost = tonumber(ARGV[4]) * interval, tonumber(ARGV[5]) * interval
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(capacity, tonumber(kept[1] or capacity) + now - tonumber(kept[2] or now))
local wait = math.max(0, cost - tokens)
if cost > capacity or wait > most then return -1 end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.0f', tokens - cost), 'at', string.format('%.0f', now))
return wait
