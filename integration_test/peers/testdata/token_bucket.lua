-- Tokens flow in up to the burst, and calls take them out. They are counted in parts of 1/period, which are whole.
-- KEYS: key; ARGV: now in ms, count, period in ms, cost, burst. Returns 1 if the call passes, and how many more would.
local now, count, period, cost, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1] or burst * period), tonumber(bucket[2] or now)
tokens = math.min(burst * period, tokens + (now - at) * count)
local passed = 0
if tokens >= cost * period then
  passed, tokens = 1, tokens - cost * period
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(burst * period / count) + 60000)
return {passed, math.floor(tokens / period)}
