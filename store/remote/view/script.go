package view

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
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

// newLua stores one key that is not there and has no list of tickets, before anything else is computed: Lua makes anew each function that
// the rest defines. At 5,000 calls a second on new keys with a window, one takes 28 µs of the engine's CPU, 34 without this, and 44 where
// the key is read first.
const newLua = `
if ARGV[6] == 'none' and ARGV[3] == '0' and (#KEYS == 1 or #KEYS == 2 and ARGV[1] ~= '') and redis.call('EXISTS', unpack(KEYS)) == 0 then
  local now, last, at = redis.call('TIME'), tonumber(ARGV[7]), 9
  if not last or now[1] * 1000000 + now[2] <= last then
    for _ = 1, tonumber(ARGV[8]) do
      local n = tonumber(ARGV[at])
      redis.call(ARGV[at + 1], KEYS[1], unpack(ARGV, at + 2, at + n))
      at = at + n + 1
    end
    return {'stored', now[1], now[2], -1}
  end
end
`

// openScript answers what the keys hold, or that the view must wait until its ticket is first.
var openScript = link.NewScript(ticketLua + readLua + `
local first = before(false)
if first > 0 then return answer('wait', first) end
return answer('read', first)
`)

// commitScript stores if the keys still hold what was read, and answers 'stored'. Else it answers what they hold now; where they do, but
// their marks are not below the IDs that it gives, it answers 'behind', and the highest mark at the end. ARGV has, after the view's
// name and whether it begins a queue, what marksLua needs, and between which instants the key expires, or nothing. For each key follow
// what it must hold, and the commands that change it.
//
// A key that is not there may have been there since it was read, and have expired: see Linger. So one that was read too long ago counts
// as changed.
var commitScript = link.NewScript(newLua + ticketLua + readLua + "local at = 3\n" + marksLua + `
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
  redis.call('PEXPIRE', turns, ` + strconv.Itoa(ticketMs) + `)
end
return {'stored', now[1], now[2], -1}
`)

// movingPause is between attempts at keys that a Cluster is moving, one by one.
const movingPause = 10 * time.Millisecond

// send sends one of the view's scripts. It calls done when the script has stored, or has read the view anew: then that is a conflict,
// unless the view has just been opened.
func (v *View) send(how *link.Script, args []string, done func()) {
	if v.ticket.name != "" && !v.deadline.After(time.Now()) { // it waited for other views, not for the engine
		v.Err = link.ErrLate
		done()
		return
	}
	names, header := v.header(how)
	r := &link.Request{Script: how, Keys: names, Args: append(header, args...), Deadline: v.deadline}
	r.Done = func(m rueidis.RedisMessage, err error) {
		if link.Is(err, link.CauseMoving) && v.sendAgain(how, len(names), func() { v.send(how, args, done) }, done) {
			return
		}
		waits := false
		switch {
		case err == nil:
			waits, v.Err = v.answered(how, m, r.Sent)
		case how == openScript: // which changes nothing
			v.Err = link.Unsent(err)
		default:
			v.Err = err
		}
		if !waits {
			done()
			return
		}
		then := done
		if how == commitScript {
			then = func() {
				v.state = stateConflict // what it stored by is void
				done()
			}
		}
		time.AfterFunc(min(v.ticket.pause(time.Since(r.Sent)), time.Until(v.deadline)), func() { v.send(openScript, nil, then) })
	}
	v.views.Link.Send(r)
}

// header is the keys of a script, and its first arguments: about tickets and marks.
func (v *View) header(how *link.Script) (names, args []string) {
	names, args = v.engineKeys(), []string{"", ""}
	if how == commitScript || v.ticket.early || v.ticket.place > 0 {
		names, args = v.ticket.arguments(v.views, names)
	}
	if how == commitScript {
		marks := v.marks.args()
		if len(marks) > 1 {
			names = slices.Insert(names, len(v.keys), v.marks.key)
		}
		args = append(args, marks...)
	}
	return names, args
}

// sendAgain sends a script again, as a Cluster is moving some of the n keys, and reports whether there is time for that. The list of
// tickets and the marks are elsewhere then: the script goes without the list, and the marks are raised before.
func (v *View) sendAgain(how *link.Script, n int, again, done func()) bool {
	switch {
	case n > len(v.keys):
		v.ticket.none = true
		if how != commitScript || v.marks.key == "" || v.marks.apart {
			again()
		} else {
			v.raise(again, done)
		}
	case time.Until(v.deadline) > 2*movingPause:
		time.AfterFunc(movingPause, again)
	default:
		return false
	}
	return true
}

// answered reads the answer of a script: an array of what it did, the seconds and microseconds of the engine's time, how many go
// first, and what the keys hold. It reports whether the view has to wait for its ticket.
func (v *View) answered(how *link.Script, m rueidis.RedisMessage, sent time.Time) (waits bool, err error) {
	answer, err := m.ToArray()
	if err != nil {
		return false, err
	}
	if len(answer) < 4 {
		return false, link.ErrAnswer
	}
	did, errDid := answer[0].ToString()
	seconds, errS := answer[1].AsInt64()
	micros, errUS := answer[2].AsInt64()
	before, errBefore := answer[3].AsInt64()
	if errors.Join(errDid, errS, errUS, errBefore) != nil {
		return false, link.ErrAnswer
	}
	nowNS := seconds*1e9 + micros*1e3
	v.views.Link.Clock(v.keys[0].name).Observe(nowNS, sent, time.Now())
	v.ticket.place = before + 1
	switch did {
	case "stored":
		v.state = stateStored
		v.views.Changed(v.engineKeys()...)
		for _, key := range v.freed {
			v.views.Freed(key)
		}
		for i := range v.keys {
			v.keys[i].read = v.keys[i].want
		}
		return false, nil
	case "wait":
		v.ticket.assumed = false
		return true, nil
	case "conflict":
		if !v.ticket.assumed {
			v.ticket.conflicts++
		}
	}
	if how == commitScript {
		v.state = stateConflict
		if !v.ticket.assumed {
			v.views.Counts.Conflicts.Add(1)
		}
		v.ticket.assumed = false
	}
	contents := answer[4:]
	if did == "behind" && len(contents) > 0 {
		mark, err := contents[len(contents)-1].AsUint64()
		if err != nil {
			return false, link.ErrAnswer
		}
		v.views.Policies.RaiseID(mark)
		contents = contents[:len(contents)-1]
	}
	return false, v.load(contents, nowNS)
}

// load notes what a script has answered: for each key an array of its type, expiry and content.
func (v *View) load(contents []rueidis.RedisMessage, nowNS int64) error {
	if len(contents) != len(v.keys) {
		return link.ErrAnswer
	}
	v.readAt(nowNS)
	for i := range v.keys {
		texts, err := contents[i].ToArray()
		if err != nil {
			return err
		}
		if err := v.keys[i].hold(texts); err != nil {
			return err
		}
	}
	return nil
}

// hold notes what the engine has under the key.
func (k *viewKey) hold(answer []rueidis.RedisMessage) error {
	k.read = content{kind: kindNone, expiry: noExpiry}
	c := &k.read
	for i := range answer {
		if i == 1 {
			ms, err := answer[i].AsInt64()
			if err != nil {
				return err
			}
			c.expiry = max(ms, noExpiry)
			continue
		}
		text, err := answer[i].ToString()
		switch {
		case err != nil:
			return err
		case i == 0:
			c.kind = text
		case c.kind == kindString:
			c.text = text
		case i%2 == 0:
			c.fields = append(c.fields, field{name: text})
		default:
			c.fields[len(c.fields)-1].text = text
		}
	}
	return nil
}

// absentUntil is the time until which a key that was absent, and still is, cannot have been taken from: the engine's time in Unix µs; empty
// if a test sets the time.
func (v *View) absentUntil() string {
	if v.views.Time != nil {
		return ""
	}
	return strconv.FormatInt((v.NowNS+int64(quickest))/1000, 10)
}

// script returns the arguments of commitScript.
func (v *View) script() (args []string, changed bool, err error) {
	highest := uint64(0)
	first, last := "", "" // a view that was read is ordered by its reading, also if an EXPIRE comes after that
	if v.state == stateCached && v.keys[0].read.kind != kindNone {
		c := &v.keys[0].read
		slack := int64(nearMs)
		first = strconv.FormatInt(c.expiry-slack, 10)
		if c.atEnd {
			slack += Linger.Milliseconds()
		}
		last = strconv.FormatInt(c.expiry+slack, 10)
	}
	args = append(args, first, last)
	v.freed = v.freed[:0]
	there := 0
	for i := range v.keys {
		k := &v.keys[i]
		want, found := k.now(v)
		if found {
			there++
		}
		if want.foreign && !k.read.foreign || k.read.foreign && want.kind != kindNone && !want.foreign {
			return nil, false, store.ErrWrongType
		}
		if k.frees(&want) {
			v.freed = append(v.freed, string(k.key))
		}
		if args = k.read.expect(args); !k.read.foreign && k.read.kind == kindNone {
			args = append(args, v.absentUntil())
		}
		was := k.read
		was.never = was.never && k.shown // a key that is over has no expiry to keep: a SET of the same begins anew
		steps := was.steps(&want)
		if k.want = want; want.lease > k.read.lease {
			highest = max(highest, want.lease)
		}
		args = append(args, strconv.Itoa(len(steps)))
		for _, step := range steps {
			changed = true
			args = append(append(args, strconv.Itoa(len(step))), step...)
		}
	}
	if v.Len(v.NowNS) > there {
		return nil, false, ErrUndeclared
	}
	v.marks = v.newMarks(highest)
	return args, changed || v.marks.key != "", nil
}

// expect appends what a key must hold for the script to store.
func (c *content) expect(args []string) []string {
	switch {
	case c.foreign:
		return append(args, "type", c.kind)
	case c.kind == kindString:
		return append(args, kindString, c.text)
	case c.kind == kindHash:
		args = append(args, kindHash, strconv.Itoa(len(c.fields)))
		for _, f := range c.fields {
			args = append(args, f.name, f.text)
		}
		return args
	}
	return append(args, kindNone)
}

// frees reports whether a change of a key to this content may give something back: taking only makes states grow, in their numbers or in
// how many there are. It may be wrong, which costs those who wait a try.
func (k *viewKey) frees(want *content) bool {
	if k.read.kind != kindHash {
		return k.read.kind != want.kind && k.read.kind != kindNone
	}
	if want.kind != kindHash {
		return true
	}
	for _, f := range k.read.fields {
		i := slices.IndexFunc(want.fields, func(w field) bool { return w.name == f.name })
		if i < 0 {
			return true
		}
		if text := want.fields[i].text; len(text) < len(f.text) || len(text) == len(f.text) && text < f.text {
			return true
		}
	}
	return false
}
