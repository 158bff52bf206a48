-- A leaky bucket as a queue: calls leave it one by one, an interval apart, in the order in which they came.
-- KEYS: key; ARGV: now in µs, interval in µs, the longest wait in µs. Returns how long to wait, or -1 if that is too long.
local now, interval, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local free = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
if free - now > most then return -1 end
redis.call('SET', KEYS[1], string.format('%.0f', free + interval))
return free - now
