package remote

// readLua reads a key: its type, its PTTL and its content. Strings that are longer than a TAT, and hashes of more fields than
// celld writes, are not read: they are foreign.
const readLua = `
local function read(key)
  local kind = redis.call('TYPE', key)['ok']
  if kind == 'none' then return {kind} end
  local r = {kind, redis.call('PTTL', key)}
  if kind == 'string' then
    if redis.call('STRLEN', key) <= 20 then r[3] = redis.call('GET', key) end
  elseif kind == 'hash' then
    if redis.call('HLEN', key) <= 256 then
      for i, text in ipairs(redis.call('HGETALL', key)) do r[i + 2] = text end
    end
  end
  return r
end
local function answer(did)
  local now = redis.call('TIME')
  local r = {did, now[1], now[2]}
  for i, key in ipairs(KEYS) do r[i + 3] = read(key) end
  return r
end
`

// openScript answers what the keys hold.
var openScript = newScript(readLua + `return answer('read')`)

// commitScript stores if the keys still hold what was read, and answers 'stored'. Else it answers what they hold now. ARGV has first the
// highest ID that a lease was given, or nothing: while the time in µs is not above it, nothing is stored. So another process, whose
// IDs are higher than its time, gives a higher one next. An ID that is far ahead was not given by the engine's time, and to wait is
// of no use. For each key follow what it must hold, and the commands that change it.
var commitScript = newScript(readLua + `
local now = redis.call('TIME')
local fence = tonumber(ARGV[1])
local us = now[1] * 1000000 + now[2]
if fence and us <= fence and us + 100000 > fence then return answer('early') end
local at, from = 2, {}
for i, key in ipairs(KEYS) do
  local kind, same = ARGV[at], nil
  at = at + 1
  if kind == 'none' then
    same = redis.call('EXISTS', key) == 0
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
  if not same then return answer('conflict') end
  from[i] = at
  local steps = tonumber(ARGV[at])
  at = at + 1
  for j = 1, steps do at = at + tonumber(ARGV[at]) + 1 end
end
for i, key in ipairs(KEYS) do
  at = from[i] + 1
  for j = 1, tonumber(ARGV[from[i]]) do
    local n = tonumber(ARGV[at])
    redis.call(ARGV[at + 1], key, unpack(ARGV, at + 2, at + n))
    at = at + n + 1
  end
end
return {'stored', now[1], now[2]}
`)
