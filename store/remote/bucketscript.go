package remote

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
	"celld/store/remote/ahead"
	"celld/store/remote/link"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

var lingerMs = strconv.FormatInt(view.Linger.Milliseconds(), 10)

// The scripts decide on runs of equal calls. Their arguments are the time in ns, empty for the engine's own, then for each run the
// tolerance, the increment and how many calls there are; of a window its count, and a call's cost. They answer what the key held, the time
// in s and ns, and 1 if they have decided nothing, as they cannot compute with what the key holds. celld then computes each reply from that
// state and time.
//
// Eight more arguments ask for units ahead of calls, and give some back: the numbers of ahead.Grant, and 'ahead'. The fifth number of the
// answer is how many are granted: see package ahead.
//
// A debt is exact as it is computed apart from the instants, in seconds and ns: Lua's numbers would lose the last 8 bits of a TAT.
//
// They define no functions, which Lua would make anew at each call. That, and %d in place of %.0f, took a call that passes from 8.3 to 7.1
// µs of the engine's CPU.
var (
	scriptTime = `
local s, n
if ARGV[1] == '' then
	local t = redis.call('TIME')
	s, n = tonumber(t[1]), t[2] * 1000
else
	s, n = tonumber(string.sub(ARGV[1], 1, -10)), tonumber(string.sub(ARGV[1], -9))
end
`
	// scriptDebt reads the TAT tat, false for none, of what the key holds, found.
	scriptDebt = `
local debt = 0
if tat then
	if #tat > 19 or not string.find(tat, '^%d+$') then return {found, s, n, 1} end
	if #tat > 9 then
		debt = (string.sub(tat, 1, -10) - s) * 1e9 + string.sub(tat, -9) - n
		if debt >= 4503599627370496 then return {found, s, n, 1} end
		if debt < 0 then debt = 0 end
	end
end
`
	// scriptRuns decides on the runs from first on, where debt is what is used, and grants units.
	scriptRuns = `
local before, gave, increment, last, units = debt, false, 0, #ARGV
if ARGV[last] == 'ahead' then
	last = last - 8
	if ARGV[last + 5] ~= '0' and tat == ARGV[last + 6] then
		local latest, less = ARGV[last + 7], debt - ARGV[last + 5] * ARGV[last + 4]
		if (string.sub(latest, 1, -10) - s) * 1e9 + string.sub(latest, -9) - n > 0 and (less > 0 or ARGV[last + 1] == '0') then
			debt = less
			if less < 0 then debt = 0 end
		end
	end
end
for i = first, last, 3 do
	local tolerance, count = tonumber(ARGV[i]), tonumber(ARGV[i + 2])
	increment = tonumber(ARGV[i + 1])
	if increment > 0 then
		local passing = math.floor((tolerance - debt) / increment)
		if passing > count then passing = count end
		if passing > 0 then debt = debt + passing * increment end
	elseif increment < 0 and debt + increment <= tolerance then
		debt = debt + count * increment
		if debt < 0 then debt = 0 end
		gave = tat
	end
end
if last < #ARGV then
	local lasts, tolerance, interval = tonumber(ARGV[last + 2]), tonumber(ARGV[last + 3]), tonumber(ARGV[last + 4])
	local base = debt
	if base < lasts then base = lasts end
	units = math.floor(math.floor((tolerance - debt) / interval) / ` + strconv.Itoa(ahead.FairShare) + `)
	if units > tonumber(ARGV[last + 1]) then units = tonumber(ARGV[last + 1]) end
	if units > 0 and units * interval >= increment then debt = base + units * interval else units = 0 end
end
`
	// scriptTAT leaves the next TAT and its ms in text and ms, if that is to be stored.
	scriptTAT = `
local text, ms
if debt > 0 and (debt ~= before or gave) then
	local sum = n + debt
	local ns = sum % 1e9
	local seconds = s + (sum - ns) / 1e9
	text, ms = string.format('%d%09d', seconds, ns), seconds * 1000 + math.ceil(ns / 1e6) + ` + lingerMs + `
end
`
	throttleText = scriptTime + `
local first, tat = 2, redis.call('GET', KEYS[1])
` + throttleRuns
	throttleRuns = `
local found = tat
` + scriptDebt + scriptRuns + scriptTAT + `
if text then
	redis.call('SET', KEYS[1], text, 'PXAT', ms)
elseif gave and debt == 0 then
	redis.call('DEL', KEYS[1])
end
return {found, s, n, 0, units}
`
	takeText = scriptTime + `
local hash, head = redis.call('HGETALL', KEYS[1]), ARGV[3]
local first, found, tat = 4, hash[2] or false, false
if found then
	if #hash > 2 or hash[1] ~= ARGV[2] or string.sub(found, 1, #head) ~= head then return {found, s, n, 1} end
	tat = string.sub(found, #head + 1)
end
` + scriptDebt + scriptRuns + scriptTAT + `
if text then
	redis.call('HSET', KEYS[1], ARGV[2], head .. text)
	redis.call('PEXPIREAT', KEYS[1], ms)
end
return {found, s, n, 0, units}
`
	// windowText needs three arguments more: when a window ends that begins now, if that is by the clock, and else how long it is, in s and
	// ns. By a change, which compares, 8 instances that asked for one key 250 times a second each sent 2.9 commands a call.
	windowText = scriptTime + `
local hash, head, ends = redis.call('HGETALL', KEYS[1]), ARGV[3], false
local first, found, tat, debt = 7, hash[2] or false, false, 0
if found then
	if #hash > 2 or hash[1] ~= ARGV[2] or string.sub(found, 1, #head) ~= head then return {found, s, n, 1} end
	ends, debt = string.match(found, '^until=([1-9]%d*) used=(%d+)$', #head + 1)
	if not ends or #ends < 10 or #ends > 19 or #ends == 19 and ends > '9223372036854775807' or #debt > 16
		or #debt > 1 and string.sub(debt, 1, 1) == '0' then return {found, s, n, 1} end
	debt = tonumber(debt)
	if debt == 0 or (string.sub(ends, 1, -10) - s) * 1e9 + string.sub(ends, -9) - n <= 0 then ends, debt = false, 0 end
end
if not ends and ARGV[4] == '' then
	local ns = n + ARGV[6]
	ends = string.format('%d%09d', s + ARGV[5] + math.floor(ns / 1e9), ns % 1e9)
elseif not ends then
	ends = ARGV[4]
	if (string.sub(ends, 1, -10) - s) * 1e9 + string.sub(ends, -9) - n <= 0 then return {found, s, n, 1} end
end
tat = ends
` + scriptRuns + `
if debt == 0 and before > 0 then
	redis.call('DEL', KEYS[1])
elseif debt ~= before then
	local ms = string.sub(ends, 1, -10) * 1000 + math.ceil(string.sub(ends, -9) / 1e6) + ` + lingerMs + `
	redis.call('HSET', KEYS[1], ARGV[2], head .. 'until=' .. ends .. ' used=' .. string.format('%.0f', debt))
	redis.call('PEXPIREAT', KEYS[1], ms)
end
return {found, s, n, 0, units}
`
)

var throttleScript, takeScript, windowScript = link.NewScript(throttleText), link.NewScript(takeText), link.NewScript(windowText)

// fieldOf is the name of a call's limit in the hash; "" if its policy is gone.
func (s *Store) fieldOf(c *store.Call) string {
	if c.Policy == nil {
		return string(c.Limit.Shape.AppendText(nil))
	}
	l := s.policies.LimitOf(c.Policy.ID)
	if l == nil {
		return ""
	}
	return view.PolicyField(l, s.settings.EpochOf(l))
}

// headOf is what stands before the TAT, or the end of the window, in the text of a limit's state.
func headOf(l *cell.Limit) string {
	text := string(l.AppendState(nil, &cell.State{}))
	if ahead.IsWindow(l) {
		return strings.TrimSuffix(text, "until=0 used=0")
	}
	return strings.TrimSuffix(text, "0")
}

// windowArgs are those of windowText.
func (d *deciding) windowArgs(l *cell.Limit) []string {
	if !l.Aligned() {
		return []string{"", strconv.FormatInt(l.PeriodNS/1e9, 10), strconv.FormatInt(l.PeriodNS%1e9, 10)}
	}
	now, known := d.link.Clock(d.key()).Lower()
	if !known {
		now = 1e18 // the script decides nothing then
	}
	return []string{strconv.FormatUint(l.WholeNS(&cell.State{}, now), 10), "", ""}
}

// deciding holds the calls of one state that are decided together.
type deciding struct {
	*Store
	group *queue.Group
	calls []*call      // the group's operations
	grant *ahead.Grant // units that one of them asks for, too; nil: none does
	sent  *link.Request
	units int64 // that it was granted
}

func (d *deciding) key() string { return d.calls[0].Key }

// byScript decides by a script.
func (d *deciding) byScript() {
	args, how := append(make([]string, 0, 6), d.timeArg()), throttleScript
	if t := d.calls[0].take; t != nil {
		l := t.Calls[0].Limit
		args = append(args, d.calls[0].field, headOf(l))
		if how = takeScript; ahead.IsWindow(l) {
			how, args = windowScript, append(args, d.windowArgs(l)...)
		}
	}
	d.run(how, args, d.ran)
}

// run sends a script, whose last arguments are the runs of calls.
func (d *deciding) run(how *link.Script, args []string, done func(answer rueidis.RedisMessage, err error)) {
	d.stats.Scripts.Add(1)
	args = appendRuns(args, d.calls)
	if d.grant != nil {
		args = append(args, d.aheadArgs()...)
	}
	d.sent = &link.Request{Script: how, Keys: []string{d.key()}, Args: args, Deadline: d.calls[0].Deadline, Done: done}
	d.link.Send(d.sent)
}

// aheadArgs ask a script for units.
func (d *deciding) aheadArgs() []string {
	args := make([]string, 0, 8)
	for _, n := range d.grant.Numbers() {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return append(args, "ahead")
}

// timeArg is the time for a script: empty, except in tests.
func (s *Store) timeArg() string {
	if fake := s.options.Time; fake != nil {
		return strconv.FormatInt(fake(), 10)
	}
	return ""
}

// appendRuns appends the tolerance, increment and number of each run of equal operations.
func appendRuns(args []string, calls []*call) []string {
	for i := 0; i < len(calls); {
		tolerance, increment := calls[i].asks()
		n := 1
		for i+n < len(calls) {
			if t, inc := calls[i+n].asks(); t != tolerance || inc != increment {
				break
			}
			n++
		}
		args = append(args, strconv.FormatInt(tolerance, 10), strconv.FormatInt(increment, 10), strconv.Itoa(n))
		i += n
	}
	return args
}

// ran answers the calls by the answer of their script.
func (d *deciding) ran(answer rueidis.RedisMessage, err error) {
	if errors.Is(err, store.ErrWrongType) { // what the key holds may be over: a view sees that
		d.views.Decide(d.group)
		return
	}
	var st cell.State
	var now, units int64
	decided := false
	if err == nil {
		st, now, decided, units, err = d.read(answer)
	}
	switch {
	case err != nil:
		d.group.End(err)
	case !decided:
		d.views.Decide(d.group)
	default:
		d.link.Clock(d.key()).Observe(now, d.sent.Sent, time.Now())
		d.units = units
		d.decided(st, now)
	}
}

// read reads the answer of a script: what the key held, the engine's time in ns, and how many units it has granted.
func (d *deciding) read(answer rueidis.RedisMessage) (st cell.State, nowNS int64, decided bool, units int64, err error) {
	found, err := answer.ToArray()
	if err != nil || len(found) < 4 || len(found) > 4 && d.grant == nil {
		return st, 0, false, 0, link.ErrAnswer
	}
	seconds, errS := found[1].ToInt64()
	ns, errN := found[2].ToInt64()
	undecided, errU := found[3].ToInt64()
	if len(found) > 4 {
		units, err = found[4].ToInt64()
	}
	if errors.Join(errS, errN, errU, err) != nil {
		return st, 0, false, 0, link.ErrAnswer
	}
	text, _ := found[0].ToString() // nil: the key was not there
	if undecided == 0 && text != "" {
		if t := d.calls[0].take; t != nil && ahead.IsWindow(t.Calls[0].Limit) {
			_, st, err = cell.ParseState(text)
		} else {
			st.A, err = strconv.ParseUint(text[strings.LastIndexByte(text, '=')+1:], 10, 64)
		}
		if err != nil {
			err = link.ErrAnswer
		}
	}
	return st, seconds*1e9 + ns, undecided == 0, units, err
}

// decided answers the calls: their key had this at this time.
func (d *deciding) decided(st cell.State, nowNS int64) {
	denied, first := false, d.calls[0]
	last, known := d.tatCache.last(first.Key, first.field)
	alone := known && last.is(st.A, nowNS)
	if d.grant != nil {
		st = d.grant.Returned(st, nowNS)
	}
	for _, o := range d.calls {
		st = o.decideAt(st, nowNS)
		denied = o.limited()
	}
	if d.grant != nil {
		st = d.grant.Granted(d.units, nowNS, st, d.sent.Sent, alone)
		for _, o := range d.calls {
			o.shown = d.units > 0
		}
	}
	var pause *ahead.Pause
	if d.grant != nil && known && !alone {
		pause = d.grant.Pause(st.A)
	}
	d.tatCache.note(first.Key, cachedTAT{st.A, st.B, first.field, first.params(), d.sent.Sent, denied || pause != nil, pause})
	d.group.End(nil)
}
