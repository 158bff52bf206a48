package remote

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"

	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/queue"
)

// counting is an INCR or INCREX, which is the engine's own: one round trip, and no view. The engine's limits are those of 64 bits.
type counting struct {
	queue.Common
	store   *Store
	request *store.CountRequest
	pending *pending
}

// CountBatch is store.Limiter's. Whatever --store-failure says, what the engine does not answer is an error.
func (s *Store) CountBatch(reqs []store.CountRequest, _ store.Access, w store.Waker) bool {
	b := newPending(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		o := &counting{queue.Common{Key: s.options.Prefix + string(reqs[i].Key), Deadline: deadline}, s, &reqs[i], b}
		s.tatCache.forget(o.Key)
		s.queues.Enqueue(o)
	}
	return b.done()
}

// GoesWith is queue.Operation's. Those that are asked in one way go together: where the engine does not know a script or INCREX, all are
// sent again, and so stay in their order.
func (o *counting) GoesWith(first queue.Operation) bool {
	f, counts := first.(*counting)
	return counts && f.request.Strict == o.request.Strict && f.conditional() == o.conditional()
}

// conditional reports NX or XX, which are Valkey's alone.
func (o *counting) conditional() bool { return o.request.Only != store.Always }

// Send is queue.Operation's. All are sent in their order, in one round trip.
func (o *counting) Send(b *queue.Group) {
	operations, left := b.Operations, new(atomic.Int64)
	left.Store(int64(len(operations)))
	for _, one := range operations {
		one.(*counting).send(func(err error) {
			b.Answer(one, err)
			if left.Add(-1) == 0 {
				b.Next()
			}
		})
	}
}

// Answer is queue.Operation's.
func (o *counting) Answer(err error) {
	if r := o.request; err != nil {
		r.Value, r.Added, r.Err = 0, 0, err
	}
	o.pending.answered()
}

// send asks the engine, and reads its answer.
func (o *counting) send(done func(err error)) {
	request := &link.Request{Keys: []string{o.Key}, Deadline: o.Deadline}
	r, native := o.request, false
	count := &r.Count
	if fake := o.store.options.Time; fake != nil && r.Expire == store.ExpireIn { // in tests, whose time is not the engine's
		later := *count
		later.Expire, later.TimeNS = store.ExpireAt, fake()+later.TimeNS
		count = &later
	}
	switch {
	case r.Strict:
		request.Args = []string{"INCRBY", strconv.FormatInt(r.By, 10)}
	case o.conditional() || !o.store.hasIncrEx(o):
		request.Script, request.Args = incrExScript, incrExArgs(count)
	default:
		native = true
		request.Args = append([]string{"INCREX"}, incrExOptions(count)...)
	}
	request.Done = func(answer rueidis.RedisMessage, err error) {
		if native && errors.Is(err, link.ErrUnknownCommand) {
			o.store.incrEx.Store(lacksIncrEx)
			o.send(done)
			return
		}
		if err == nil {
			err = o.read(answer)
		}
		done(err)
	}
	o.store.link.Send(request)
}

// Whether the engine has INCREX.
const (
	maybeIncrEx = iota
	asksIncrEx
	lacksIncrEx
	knowsIncrEx
)

// hasIncrEx reports that the engine is known to have INCREX. The first call asks for it, and does not wait.
func (s *Store) hasIncrEx(o *counting) bool {
	if s.incrEx.CompareAndSwap(maybeIncrEx, asksIncrEx) {
		s.link.Send(&link.Request{Script: knownScript, Keys: []string{o.Key}, Deadline: o.Deadline,
			Done: func(answer rueidis.RedisMessage, err error) {
				switch known, bad := answer.AsInt64(); {
				case err != nil || bad != nil:
					s.incrEx.Store(maybeIncrEx)
				case known == 1:
					s.incrEx.Store(knowsIncrEx)
				default:
					s.incrEx.Store(lacksIncrEx)
				}
			}})
	}
	return s.incrEx.Load() == knowsIncrEx
}

// knownScript asks for what INCREX refuses in words of its own, if the engine has it and lets celld's user call it.
var knownScript = link.NewScript(knownText)

const knownText = `
local answer = redis.pcall('INCREX', KEYS[1], 'LBOUND', '1', 'UBOUND', '0')
return string.find(answer.err, 'BOUND') and 1 or 0
`

// read reads what the key holds and, of INCREX, how much that is more; of the script, also whether the condition is met.
func (o *counting) read(answer rueidis.RedisMessage) (err error) {
	r := o.request
	r.Met, r.Err = true, nil
	if r.Strict {
		r.Value, err = answer.AsInt64()
		return err
	}
	parts, err := answer.ToArray()
	if err != nil || len(parts) < 2 {
		return link.ErrAnswer
	}
	if r.Value, err = parts[0].AsInt64(); err == nil {
		r.Added, err = parts[1].AsInt64()
	}
	r.Met = len(parts) == 2
	return err
}

// incrExOptions are the options of INCREX, as Redis 8.8 and Valkey 9.2 take them.
func incrExOptions(c *store.Count) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	words := []string{"BYINT", number(c.By), "LBOUND", number(c.Lower), "UBOUND", number(c.Upper)}
	if c.Saturate {
		words = append(words, "SATURATE")
	}
	if kind := expireWord[c.Expire]; kind != "" {
		words = append(words, kind)
		if c.Expire != store.NeverExpire {
			words = append(words, number(c.TimeNS/1e6))
		}
	}
	if c.IfNone {
		words = append(words, "ENX")
	}
	return words
}

var expireWord = [...]string{store.NeverExpire: "PERSIST", store.ExpireIn: "PX", store.ExpireAt: "PXAT"}

// incrExArgs are the arguments of incrExScript.
func incrExArgs(c *store.Count) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	args := []string{number(c.By), number(c.Lower), number(c.Upper), "", "", expireWord[c.Expire], number(c.TimeNS / 1e6), ""}
	if c.Saturate {
		args[3] = "SATURATE"
	}
	args[4] = [...]string{store.IfAbsent: "NX", store.IfPresent: "XX"}[c.Only]
	if c.IfNone {
		args[7] = "ENX"
	}
	return args
}

// incrExScript does what INCREX does, for engines that lack it. Lua's numbers are exact up to 2^53, so it counts in two limbs: an integer
// is high * 10^9 + low. Its third element, where there is one, says that the condition is not met.
var incrExScript = link.NewScript(`
local function limbs(text)
  local sign, digits = string.match(text, '^(-?)(%d+)$')
  if not digits or #digits > 19 or string.sub(digits, 1, 1) == '0' and (sign == '-' or #digits > 1) then return end
  local high, low = tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9))
  if sign == '-' then
    high, low = -high, -low
    if low < 0 then high, low = high - 1, low + 1e9 end
  end
  return high, low
end
local function text(high, low)
  local sign = ''
  if high < 0 then
    sign, high, low = '-', -high, -low
    if low < 0 then high, low = high - 1, low + 1e9 end
  end
  if high > 0 then return string.format('%s%d%09d', sign, high, low) end
  return string.format('%s%d', sign, low)
end
local function less(high, low, other, lower) return high < other or high == other and low < lower end
local function beyond(high, low) return less(9223372036, 854775807, high, low) or less(high, low, -9223372037, 145224192) end

local key, only, kind = KEYS[1], ARGV[5], ARGV[6]
local found = redis.call('GET', key)
local high, low = limbs(found or '0')
if not high or beyond(high, low) then return redis.error_reply('ERR value is not an integer or out of range') end
if only == 'NX' and found or only == 'XX' and not found then return {found or '0', '0', 'unmet'} end
local byHigh, byLow = limbs(ARGV[1])
local sumHigh, sumLow = high + byHigh, low + byLow
if sumLow >= 1e9 then sumHigh, sumLow = sumHigh + 1, sumLow - 1e9 end
local lowerHigh, lowerLow = limbs(ARGV[2])
local upperHigh, upperLow = limbs(ARGV[3])
local under = less(sumHigh, sumLow, lowerHigh, lowerLow)
if under or less(upperHigh, upperLow, sumHigh, sumLow) then
  if ARGV[4] == '' then return {found or '0', '0'} end
  if under then sumHigh, sumLow = lowerHigh, lowerLow else sumHigh, sumLow = upperHigh, upperLow end
end
local addedHigh, addedLow = sumHigh - high, sumLow - low
if addedLow < 0 then addedHigh, addedLow = addedHigh - 1, addedLow + 1e9 end
if beyond(addedHigh, addedLow) then return redis.error_reply('ERR applied increment would overflow') end
local sum = text(sumHigh, sumLow)
if ARGV[8] ~= '' and redis.call('PTTL', key) >= 0 then kind = '' end
if kind == '' then
  redis.call('SET', key, sum, 'KEEPTTL')
elseif kind == 'PERSIST' then
  redis.call('SET', key, sum)
else
  redis.call('SET', key, sum, kind, ARGV[7])
end
return {sum, text(addedHigh, addedLow)}
`)
