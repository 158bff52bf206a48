package settings

import (
	"celld/store/remote/link"
)

// Policies and rules are two hashes on the engine. A field is a policy's name, or a rule's as policy.Rule.Name has it. Two more fields
// have the version, which grows with each change, and the first version that the hash has had. Every instance asks for the version again
// and again, and reads all when it is another. Another first version tells that the engine has lost all since. Without it, a
// change just after the loss hid it, and policies of files stayed away.
//
//	celld:policies   " version" 1763800000123    " since" 1763799990456    api   100/1m 1763799990456 @api/gcra/1m …
//	celld:rules      " version" 1763800000789    " since" 1763800000789    DENY - bad:*   1763800060000
//
// A policy has its limits, each with its epoch and the name of its states. A rule has until when it holds, a time of the engine in Unix
// ms, or 0 for ever.
// An epoch is the version that made a limit, or reset its policy. What was taken under another epoch does not count any more. Versions are
// the engine's time in ms, or one more than the last: so they mostly grow where the engine has lost its keys, too.

// No policy and no rule has the name of one of these fields.
const versionField, sinceField = " version", " since"

// Callers who choose whole keys may have made a limit of the hash's name. It counts as no settings, and the first change removes it.

// bump defines was, the version before a change; bump, which sets the next version; and full, whether there are as many settings as may be.
// The last argument is the time in Unix ms, empty for the engine's own.
const bump = `
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local time = redis.call('TIME')
local now = tonumber(ARGV[#ARGV]) or time[1] * 1000 + math.floor(time[2] / 1000)
local was = redis.call('HGET', KEYS[1], ' version') or ''
local function bump()
	local version = string.format('%.0f', math.max((tonumber(was) or 0) + 1, now))
	redis.call('HSET', KEYS[1], ' version', version)
	if was == '' then redis.call('HSET', KEYS[1], ' since', version) end
	return version
end
local function full(most) return redis.call('HLEN', KEYS[1]) >= most + (was == '' and 0 or 2) end
`

// The scripts of changes answer 1 when they did it, 0 when not and -1 when there are too many; the version before and after; and the
// field's value, if it has one.
var (
	// readSettings returns the version if it and the first one are those that are known, else all. The version alone may come again: as
	// many changes in a ms take it ahead of the time, it may be that of the first changes after a loss.
	readSettings = link.NewScript(`
local version = redis.pcall('HGET', KEYS[1], ' version')
if type(version) == 'table' then return {} end
if version == ARGV[1] and (redis.call('HGET', KEYS[1], ' since') or '') == ARGV[2] then return version end
return redis.call('HGETALL', KEYS[1])`)

	setPolicy = link.NewScript(bump + `
local name, condition, reset, most = unpack(ARGV)
local old = redis.call('HGET', KEYS[1], name)
if old and condition == 'NX' or not old and condition == 'XX' then return {0, was, was} end
if not old and full(tonumber(most)) then return {-1, was, was} end
local epochs = {}
if reset == '0' then
	for epoch, limit in string.gmatch(old or '', '[^ ]+ (%d+) ([^ ]+)') do epochs[limit] = epoch end
end
local function value(version)
	local words = {}
	for i = 5, #ARGV - 1, 2 do
		words[#words + 1] = ARGV[i] .. ' ' .. (epochs[ARGV[i + 1]] or version) .. ' ' .. ARGV[i + 1]
	end
	return table.concat(words, ' ')
end
if value('') == old then return {1, was, was, old} end
local version = bump()
redis.call('HSET', KEYS[1], name, value(version))
return {1, was, version, value(version)}`)

	deleteSetting = link.NewScript(bump + `
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then return {0, was, was} end
redis.call('HDEL', KEYS[1], ARGV[1])
local held = not string.match(old, '^%d+$') or old == '0' or tonumber(old) > now
return {held and 1 or 0, was, bump()}`)

	// A rule that is over makes room only where there is none: those who read all leave it out.
	putRule = link.NewScript(bump + `
local name, lasts, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function over(ends) return ends ~= '0' and tonumber(ends) <= now end
local old = redis.call('HGET', KEYS[1], name)
if old == '0' and lasts == 0 then return {0, was, was, old} end
if not old and full(most) then
	local all = redis.call('HGETALL', KEYS[1])
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 1) ~= ' ' and over(all[i + 1]) then redis.call('HDEL', KEYS[1], all[i]) end
	end
	if full(most) then return {-1, was, was} end
end
local ends = '0'
if lasts > 0 then ends = string.format('%.0f', math.min(now + lasts, 9223372036851)) end
local new = not old or over(old)
redis.call('HSET', KEYS[1], name, ends)
return {new and 1 or 0, was, bump(), ends}`)
)
