//go:build linux

package main

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
)

// The limiters that people write in Lua for redis-server. All answer the five integers of CL.THROTTLE, and except for INCR they
// write nothing when they deny.

// windowScript counts calls from the first on: limit, period in ms.
const windowScript = `local limit = tonumber(ARGV[1])
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local left = redis.call('PTTL', KEYS[1])
if used > limit then return {1, limit, 0, left, left} end
return {0, limit, limit - used, -1, left}`

// logScript remembers each call in a sorted set: limit, period in µs.
const logScript = `local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - period))
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {1, limit, 0, oldest[2] + period - now, period}
end
local at = string.format('%.0f', now)
redis.call('ZADD', KEYS[1], at, at .. '-' .. used)
redis.call('PEXPIRE', KEYS[1], period / 1000)
return {0, limit, limit - used - 1, -1, period}`

// bucketScript is a token bucket in a hash: capacity, limit, period in µs.
const bucketScript = `local capacity, interval = tonumber(ARGV[1]), ARGV[3] / ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or capacity, tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) / interval)
if tokens < 1 then return {1, capacity, 0, (1 - tokens) * interval, (capacity - tokens) * interval} end
tokens = tokens - 1
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - tokens) * interval / 1000))
return {0, capacity, tokens, -1, (capacity - tokens) * interval}`

func shaOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// loadScript sends a server a script to keep, if there is one.
func loadScript(s *server, script string) error {
	if script == "" {
		return nil
	}
	if sha, err := ask(s.addr, "SCRIPT", "LOAD", script); err != nil || sha != shaOf(script) {
		return fmt.Errorf("SCRIPT LOAD: %q, %v", sha, err)
	}
	return nil
}
