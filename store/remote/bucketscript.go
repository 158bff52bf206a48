package remote

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
)

func newScript(text string) *script {
	digest := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(digest[:])}
}

// The scripts decide on runs of equal calls. Their arguments are the time in ns, empty for the engine's own, then for each run the
// tolerance, the increment and how many calls there are. They answer what the key held, the time in s and ns, and 1 where they
// have decided nothing, as the key holds what they cannot compute with. celld then computes each reply from that TAT and time.
//
// A debt is exact as it is computed apart from the instants, in seconds and ns: Lua's numbers would lose the last 8 bits of a TAT.
const (
	scriptTime = `
local s, n
if ARGV[1] == '' then
	local t = redis.call('TIME')
	s, n = tonumber(t[1]), tonumber(t[2]) * 1000
else
	s, n = tonumber(string.sub(ARGV[1], 1, -10)), tonumber(string.sub(ARGV[1], -9))
end
local debt, gave = 0, false
local function owe(tat)
	if #tat > 9 then
		debt = (tonumber(string.sub(tat, 1, -10)) - s) * 1e9 + tonumber(string.sub(tat, -9)) - n
		if debt < 0 then debt = 0 end
	end
	return #tat < 20 and debt < 4503599627370496
end
local function run(first)
	local before = debt
	for i = first, #ARGV, 3 do
		local tolerance, increment, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
		if increment > 0 then
			local passing = math.min(count, math.floor((tolerance - debt) / increment))
			if passing > 0 and debt + passing * increment > tolerance then passing = passing - 1 end
			if passing > 0 then debt = debt + passing * increment end
		elseif increment < 0 and debt + increment <= tolerance then
			debt = math.max(0, debt + count * increment)
			gave = true
		end
	end
	return debt ~= before
end
local function stored()
	local seconds = s + math.floor((n + debt) / 1e9)
	local ns = (n + debt) % 1e9
	return string.format('%.0f%09.0f', seconds, ns), string.format('%.0f', seconds * 1000 + math.ceil(ns / 1e6))
end
`
	throttleText = scriptTime + `
local tat = redis.call('GET', KEYS[1])
if tat and (not string.match(tat, '^%d+$') or not owe(tat)) then return {tat, s, n, 1} end
if run(2) and debt > 0 then
	local text, ms = stored()
	redis.call('SET', KEYS[1], text, 'PXAT', ms)
elseif gave and tat then
	if debt > 0 then
		local text, ms = stored()
		redis.call('SET', KEYS[1], text, 'PXAT', ms)
	else
		redis.call('DEL', KEYS[1])
	end
end
return {tat, s, n, 0}
`
	takeText = scriptTime + `
local hash = redis.call('HGETALL', KEYS[1])
local text, head = hash[2], ARGV[3]
if text then
	local tat = string.sub(text, #head + 1)
	if #hash > 2 or hash[1] ~= ARGV[2] or string.sub(text, 1, #head) ~= head or not string.match(tat, '^%d+$') or not owe(tat) then
		return {text, s, n, 1}
	end
end
if run(4) then
	local tat, ms = stored()
	redis.call('HSET', KEYS[1], ARGV[2], head .. tat)
	redis.call('PEXPIREAT', KEYS[1], ms)
end
return {text or false, s, n, 0}
`
)

var throttleScript, takeScript = newScript(throttleText), newScript(takeText)

// fieldOf is the name of a call's limit in the hash, "" where its policy is gone.
func (s *Store) fieldOf(c *store.Call) string {
	if c.Policy == 0 {
		return string(c.Limit.Shape.AppendText(nil))
	}
	p := s.policies.PolicyOf(c.Policy)
	if p == nil {
		return ""
	}
	return policyField(p, s.epochOf(p))
}

// headOf is what stands before the TAT in the text of a limit's state.
func headOf(l *cell.Limit) string {
	return strings.TrimSuffix(string(l.AppendState(nil, &cell.State{})), "0")
}

// decideBuckets has a script decide on operations of one key, and of one state.
func (s *Store) decideBuckets(q *queue, ops []*operation) {
	args := make([]string, 0, 6)
	if fake := s.options.Time; fake != nil {
		args = append(args, strconv.FormatInt(fake(), 10))
	} else {
		args = append(args, "")
	}
	how := throttleScript
	if t := ops[0].take; t != nil {
		how = takeScript
		args = append(args, ops[0].field, headOf(t.Calls[0].Limit))
	}
	args = appendRuns(args, ops)
	s.stats.Scripts.Add(1)
	r := &request{script: how, keys: []string{q.key}, args: args, deadline: ops[0].deadline}
	r.done = func(answer rueidis.RedisMessage, err error) { s.bucketsDecided(q, ops, r, answer, err) }
	s.send(r)
}

// appendRuns appends the tolerance, increment and number of each run of equal operations.
func appendRuns(args []string, ops []*operation) []string {
	for i := 0; i < len(ops); {
		tolerance, increment := ops[i].bucket()
		n := 1
		for i+n < len(ops) {
			if t, inc := ops[i+n].bucket(); t != tolerance || inc != increment {
				break
			}
			n++
		}
		args = append(args, strconv.FormatInt(tolerance, 10), strconv.FormatInt(increment, 10), strconv.Itoa(n))
		i += n
	}
	return args
}

var errAnswer = errors.New("the engine has answered something else than its script")

// bucketsDecided answers operations by what their script has answered.
func (s *Store) bucketsDecided(q *queue, ops []*operation, r *request, answer rueidis.RedisMessage, err error) {
	if errors.Is(err, store.ErrWrongType) { // what it holds may be over: a view sees that
		s.changes(q, s.asChanges(ops))
		return
	}
	if err != nil {
		s.refuse(q, ops, err)
		return
	}
	found, err := answer.ToArray()
	if err != nil || len(found) != 4 {
		s.refuse(q, ops, errAnswer)
		return
	}
	seconds, errS := found[1].ToInt64()
	ns, errN := found[2].ToInt64()
	undecided, errU := found[3].ToInt64()
	if errS != nil || errN != nil || errU != nil {
		s.refuse(q, ops, errAnswer)
		return
	}
	if undecided != 0 {
		s.changes(q, s.asChanges(ops))
		return
	}
	now := seconds*1e9 + ns
	s.clockOf(q.key).observe(now, r.sent, time.Now())
	text, _ := found[0].ToString() // nil: the key was not there
	if ops[0].take != nil {
		text = text[strings.LastIndexByte(text, '=')+1:]
	}
	tat, err := uint64(0), error(nil)
	if text != "" {
		if tat, err = strconv.ParseUint(text, 10, 64); err != nil {
			s.refuse(q, ops, errAnswer)
			return
		}
	}
	s.decided(q, ops, tat, now, r.sent)
}

// decided answers operations whose key had this TAT at this time, and was asked after sent.
func (s *Store) decided(q *queue, ops []*operation, tat uint64, nowNS int64, sent time.Time) {
	denied := false
	for _, o := range ops {
		tat = o.decideAt(tat, nowNS)
		denied = o.limited()
	}
	sh := s.queues.shardOf(q.key)
	sh.mu.Lock()
	sh.known.note(q.key, ops[0].field, ops[0].params(), tat, sent, denied)
	sh.mu.Unlock()
	for _, o := range ops {
		s.answer(o, nil)
	}
	s.next(q)
}

// refuse ends operations that were not decided.
func (s *Store) refuse(q *queue, ops []*operation, err error) {
	for _, o := range ops {
		s.answer(o, err)
	}
	s.next(q)
}
