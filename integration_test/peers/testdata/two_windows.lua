-- The counters of this window and of the one before, which weighs as much as is left of it in the last period.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost. Returns 1 if the call passes, and how many more would.
local now, count, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local number = math.floor(now / period)
local here, before = KEYS[1] .. ':' .. number, KEYS[1] .. ':' .. number - 1
local used = tonumber(redis.call('GET', here) or 0)
local weighted = tonumber(redis.call('GET', before) or 0) * (period - now % period) -- in calls times period
local passed = 0
if used * period + weighted + cost * period <= count * period then
  passed, used = 1, redis.call('INCRBY', here, cost)
  redis.call('PEXPIRE', here, 2 * period + 60000)
end
return {passed, math.max(0, count - used - math.ceil(weighted / period))}
