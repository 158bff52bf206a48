-- A bucket that leaks: a call that would make it run over does not pass. It is filled in parts of 1/period, which are whole.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost, what it holds. Returns 1 if the call passes, and how many more would.
local now, count, period, cost, size = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local water = tonumber(redis.call('GET', KEYS[1] .. ':water') or 0)
local at = tonumber(redis.call('GET', KEYS[1] .. ':at') or now)
water = math.max(0, water - (now - at) * count)
if water + cost * period > size * period then
  return {0, math.floor((size * period - water) / period)}
end
water = water + cost * period
redis.call('PSETEX', KEYS[1] .. ':water', math.ceil(water / count) + 60000, water)
redis.call('PSETEX', KEYS[1] .. ':at', math.ceil(water / count) + 60000, now)
return {1, math.floor((size * period - water) / period)}
