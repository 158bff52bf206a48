package remote

import (
	"strconv"

	"celld/store/remote/link"
)

// readLua reads a key: its type, its expiry in Unix ms or -1, and its content. Strings that are longer than a TAT and an expiry, and hashes
// of more fields than celld writes, are not read: they are foreign. Redis 6.2 has no PEXPIRETIME; there the expiry may be 1 ms off.
const readLua = `
local now = redis.call('TIME')
local function expiry(key)
  local ms = redis.pcall('PEXPIRETIME', key)
  if type(ms) == 'number' then return ms end
  ms = redis.call('PTTL', key)
  if ms < 0 then return -1 end
  return now[1] * 1000 + math.floor(now[2] / 1000) + ms
end
local function read(key)
  local kind = redis.call('TYPE', key)['ok']
  if kind == 'none' then return {kind} end
  local r = {kind, expiry(key)}
  if kind == 'string' then
    if redis.call('STRLEN', key) <= 40 then r[3] = redis.call('GET', key) end
  elseif kind == 'hash' then
    if redis.call('HLEN', key) <= 256 then
      for i, text in ipairs(redis.call('HGETALL', key)) do r[i + 2] = text end
    end
  end
  return r
end
local function answer(did, first)
  local r = {did, now[1], now[2], first}
  if did ~= 'wait' then
    for i = 1, count do r[i + 4] = read(KEYS[i]) end
  end
  return r
end
`

// openScript answers what the keys hold, or has the view wait for its turn.
var openScript = link.NewScript(turnLua + readLua + `
local first = before(false)
if first > 0 then return answer('wait', first) end
return answer('read', first)
`)

// commitScript stores if the keys still hold what was read, and answers 'stored'. Else it answers what they hold now; where they do, but
// their marks are not below the IDs that it gives, it answers 'behind', and the highest mark at the end. ARGV has, after the view's
// name and whether it begins a queue, what marksLua needs, and between which instants the key expires, or nothing. For each key follow
// what it must hold, and the commands that change it.
//
// A key that is not there may have been there since it was read, and have expired: see linger. So one that was read too long ago counts
// as changed.
var commitScript = link.NewScript(turnLua + readLua + "local at = 3\n" + marksLua + `
local first = before(false)
if first > 0 then return answer('wait', first) end
local us = now[1] * 1000000 + now[2]
local from, same = {}, true
if ARGV[at] ~= '' then
  local ms = expiry(KEYS[1])
  same = ms >= tonumber(ARGV[at]) and ms <= tonumber(ARGV[at + 1])
end
at = at + 2
for i = 1, count do
  local key = KEYS[i]
  local kind = ARGV[at]
  at = at + 1
  if not same then -- its expiry is not
  elseif kind == 'none' then
    local last = tonumber(ARGV[at])
    at = at + 1
    same = redis.call('EXISTS', key) == 0 and not (last and us > last)
  elseif kind == 'string' then
    same = redis.pcall('GET', key) == ARGV[at]
    at = at + 1
  elseif kind == 'hash' then
    local n = tonumber(ARGV[at])
    at = at + 1
    same = redis.pcall('HLEN', key) == n
    if same then
      for j = at, at + 2 * n - 1, 2 do
        same = same and redis.call('HGET', key, ARGV[j]) == ARGV[j + 1]
      end
    end
    at = at + 2 * n
  else
    same = redis.call('TYPE', key)['ok'] == ARGV[at]
    at = at + 1
  end
  if not same then
    if first < 0 and ARGV[2] == '1' then first = before(true) end
    if first > 0 then return answer('wait', first) end
    return answer('conflict', first)
  end
  from[i] = at
  local steps = tonumber(ARGV[at])
  at = at + 1
  for j = 1, steps do at = at + tonumber(ARGV[at]) + 1 end
end
if behind then
  local r = answer('behind', first)
  r[#r + 1] = string.format('%.0f', highest)
  return r
end
` + raiseLua + `
for i = 1, count do
  local key = KEYS[i]
  at = from[i] + 1
  for j = 1, tonumber(ARGV[from[i]]) do
    local n = tonumber(ARGV[at])
    redis.call(ARGV[at + 1], key, unpack(ARGV, at + 2, at + n))
    at = at + n + 1
  end
end
if first == 0 then
  redis.call('LPOP', turns)
  redis.call('PEXPIRE', turns, ` + strconv.Itoa(turnMs) + `)
end
return {'stored', now[1], now[2], -1}
`)
