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
// A policy has its limits, each with its epoch and the name of its states. A temporary one has a field of its own, " EX api", and its end
// before its limits. Ends are times of the engine in Unix ms. A rule has until when it holds, or 0 for ever.
// What is over stays until it is replaced, or until there is no room: those who read all leave it out. An instance of an
// earlier build finds temporary policies no policies, logs a warning, and decides by the lasting ones.
//
// An epoch is the version that made a limit, or reset its policy. What was taken under another epoch does not count any more. Versions are
// the engine's time in ms, or one more than the last: so they mostly grow where the engine has lost its keys, too.

// No policy and no rule has the name of one of these fields. temporaryFields begin the fields of temporary policies. timeField is in no
// hash: it has the engine's time in what is read.
const versionField, sinceField, timeField, temporaryFields = " version", " since", " time", " EX "

// Callers who choose whole keys may have made a limit of the hash's name. It counts as no settings, and the first change removes it.

// bump defines was, the version before a change; bump, which sets the next version; over, whether a field has come to its end; and full,
// whether there are as many settings as may be, without those that are over.
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
local function over(value)
	local ends = string.match(value .. ' ', '^(%d+) ')
	return ends and ends ~= '0' and tonumber(ends) <= now
end
local function full(most)
	local function are() return redis.call('HLEN', KEYS[1]) >= most + (was == '' and 0 or 2) end
	if not are() then return false end
	local all = redis.call('HGETALL', KEYS[1])
	for i = 1, #all, 2 do
		local own = all[i] == ' version' or all[i] == ' since'
		if not own and over(all[i + 1]) then redis.call('HDEL', KEYS[1], all[i]) end
	end
	return are()
end
`

// The scripts of changes answer 1 when they did it, 0 when not and -1 when there are too many; the version before and after; and what is
// there now, if anything is: the field's value and, of a policy, that of its temporary one, each of which may be empty.
var (
	// readSettings returns the version if it and the first one are those that are known, else all and the time. The version alone may
	// come again: as many changes in a ms take it ahead of the time, it may be that of the first changes after a loss.
	readSettings = link.NewScript(`
local version = redis.pcall('HGET', KEYS[1], ' version')
if type(version) == 'table' then return {} end
if version == ARGV[1] and (redis.call('HGET', KEYS[1], ' since') or '') == ARGV[2] then return version end
local all, time = redis.call('HGETALL', KEYS[1]), redis.call('TIME')
all[#all + 1] = ' time'
all[#all + 1] = ARGV[3] ~= '' and ARGV[3] or string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return all`)

	// lasts is how many ms a temporary policy lasts; 0 for a lasting one that leaves the temporary one as it is; empty for one that
	// replaces both. Limits of both keep their epoch, or get a new one, together.
	setPolicy = link.NewScript(bump + `
local name, condition, reset, most, lasts = unpack(ARGV)
local lasting, temporary = redis.call('HGET', KEYS[1], name), redis.call('HGET', KEYS[1], ' EX ' .. name)
if temporary and over(temporary) then
	redis.call('HDEL', KEYS[1], ' EX ' .. name)
	temporary = false
end
local old = lasting or temporary
if old and condition == 'NX' or not old and condition == 'XX' then return {0, was, was} end
local room = lasting
if lasts == '' then room = old elseif lasts ~= '0' then room = temporary end
if not room and full(tonumber(most)) then return {-1, was, was} end
local epochs = {}
local function read(value)
	for epoch, limit in string.gmatch(value or '', '[^ ]+ (%d+) ([^ ]+)') do epochs[limit] = epoch end
end
if reset == '0' then
	read(lasting)
	read(temporary and string.gsub(temporary, '^%d+ ', ''))
end
local function value(version)
	local words = {}
	for i = 6, #ARGV - 1, 2 do
		words[#words + 1] = ARGV[i] .. ' ' .. (epochs[ARGV[i + 1]] or version) .. ' ' .. ARGV[i + 1]
	end
	return table.concat(words, ' ')
end
if lasts ~= '' and lasts ~= '0' then
	local version = bump()
	temporary = string.format('%.0f ', math.min(now + tonumber(lasts), 9223372036851)) .. value(version)
	redis.call('HSET', KEYS[1], ' EX ' .. name, temporary)
	if lasting and reset ~= '0' then
		lasting = string.gsub(lasting, '([^ ]+) %d+ ([^ ]+)', '%1 ' .. version .. ' %2')
		redis.call('HSET', KEYS[1], name, lasting)
	end
	return {1, was, version, lasting or '', temporary}
end
if value('') == lasting and (lasts == '0' or not temporary) then return {1, was, was, lasting, temporary or ''} end
local version = bump()
redis.call('HSET', KEYS[1], name, value(version))
if lasts == '' and temporary then
	redis.call('HDEL', KEYS[1], ' EX ' .. name)
	temporary = false
end
return {1, was, version, value(version), temporary or ''}`)

	deleteSetting = link.NewScript(bump + `
local one, temporary = redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[1], ' EX ' .. ARGV[1])
if not one and not temporary then return {0, was, was} end
redis.call('HDEL', KEYS[1], ARGV[1], ' EX ' .. ARGV[1])
local held = one and not over(one) or temporary and not over(temporary)
return {held and 1 or 0, was, bump()}`)

	putRule = link.NewScript(bump + `
local name, lasts, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local old = redis.call('HGET', KEYS[1], name)
if old == '0' and lasts == 0 then return {0, was, was, old} end
if not old and full(most) then return {-1, was, was} end
local ends = '0'
if lasts > 0 then ends = string.format('%.0f', math.min(now + lasts, 9223372036851)) end
local new = not old or over(old)
redis.call('HSET', KEYS[1], name, ends)
return {new and 1 or 0, was, bump(), ends}`)
)
