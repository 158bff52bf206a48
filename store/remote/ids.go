package remote

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/link"
)

// IDs of leases are fencing tokens: those of a key grow, whoever gives them, and whatever clocks do. So the engine has a mark for each
// slot: the highest ID that a lease under a key of the slot was given. A change that gives an ID is stored only if that is above the marks
// of its keys, and raises them. Else the process learns of the mark, and decides again. Marks stay when leases end and keys go.
//
//	celld:ids          5798 1795369162355930      one hash with a field for each slot, at most 16,384: 1.2 MB
//	celld:ids:{4zp}    5798 1795369162355930      in a Cluster one hash for each slot, in that slot
//
// An ID is the time in µs, by the engine's clock or this process's, whichever is ahead, or the next after the last that this process knows.
// So where marks are lost, as after a failover, IDs grow as long as one of the two clocks is right. Its last 8 bits are the process's
// number, which the engine gives. So no two processes give the same ID, even then.
const idsKey = "celld:ids"

// processes is how many numbers there are. They are given in turn, so one is given again after 256 starts. A process that gives up to 3,900
// leases a second has IDs in step with the clock.
const processes = 1 << 8

// numberField is the field of celld:ids that has the number given last. An engine that has lost it goes on from any.
const numberField = " process"

var numberScript = link.NewScript(`
local n = (tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '') or tonumber(ARGV[2])) + 1
redis.call('HSET', KEYS[1], ARGV[1], n)
return n
`)

// process is this process's number.
type process struct {
	number atomic.Uint64 // by chance, until the engine has given one
	given  atomic.Bool   // or it is being asked for
}

// init draws a number.
func (p *process) init() { p.number.Store(rand.Uint64N(processes)) }

// askNumber asks for a number, unless there is one, or the engine is known to refuse writes.
func (s *Store) askNumber() {
	if s.link.Away() != nil || s.link.Down() != nil || s.process.given.Swap(true) {
		return
	}
	key := s.options.Prefix + idsKey
	drawn := strconv.FormatUint(s.process.number.Load(), 10)
	r := &link.Request{Script: numberScript, Keys: []string{key}, Args: []string{numberField, drawn}, Deadline: s.deadline()}
	r.Done = func(answer rueidis.RedisMessage, err error) {
		n := int64(0)
		if err == nil {
			n, err = answer.AsInt64()
		}
		if err != nil {
			s.process.given.Store(false)
			return
		}
		s.process.number.Store(uint64(n) % processes)
	}
	s.send(r)
}

// table is what a view's keys are in. It gives leases their IDs.
type table struct {
	*memory.Store
	first, last uint64 // of those that it gave for this view; 0: none
}

func (s *Store) newTable() *table {
	t := &table{}
	t.Store = memory.New(memory.Options{MaxKeys: mostKeys, Shards: 1, Policies: s.policies, NewID: func(us int64) uint64 {
		t.last = s.newID(us)
		if t.first == 0 {
			t.first = t.last
		}
		return t.last
	}})
	return t
}

// newID returns an ID above all that this process knows. us is the time of who decides.
func (s *Store) newID(us int64) uint64 {
	own := time.Now().UnixMicro()
	if s.own != nil {
		own = s.own() / 1000
	}
	return s.policies.NextIDOf(max(us, own), s.process.number.Load(), processes)
}

// marks are what a view's change does to the marks of its keys. Without a key there is nothing to do.
type marks struct {
	key    string
	fields []string
	first  uint64 // the lowest ID that it gives, which must be above the marks; 0: it gives none, but brings leases from elsewhere
	last   uint64
	apart  bool // they are raised already, as a Cluster that moves the slot does not take them together with the keys
}

// newMarks says what a change of the view does to marks, of which highest is the highest ID that is new under one of its keys.
func (v *View) newMarks(highest uint64) (m marks) {
	m.first, m.last = v.table.first, max(v.table.last, highest)
	if m.last == 0 || m.last > policy.MostID {
		return marks{}
	}
	m.key = v.store.link.PerSlot(v.keys[0].name)
	for i := range v.keys {
		if slot := strconv.Itoa(int(link.SlotOf(v.keys[i].name))); !slices.Contains(m.fields, slot) {
			m.fields = append(m.fields, slot)
		}
	}
	return m
}

// args are those of marksLua.
func (m *marks) args() []string {
	if m.key == "" || m.apart {
		return []string{"0"}
	}
	return append([]string{strconv.Itoa(len(m.fields)), strconv.FormatUint(m.first, 10), strconv.FormatUint(m.last, 10)}, m.fields...)
}

// marksLua looks at the marks before a change. ARGV has, from at on, how many there are, and where there are any the first and the last
// ID and the fields; the hash is the last of the count KEYS. Where the highest mark is not below the first ID, behind is true. at and
// count are then those of what follows.
var marksLua = `
local behind, highest, marks = false, 0, tonumber(ARGV[at])
local fields = at + 2
at = at + 1
if marks > 0 then
  for i = 1, marks do
    local mark = tonumber(redis.call('HGET', KEYS[count], ARGV[fields + i]) or 0)
    if mark and mark <= ` + strconv.Itoa(policy.MostID) + ` then highest = math.max(highest, mark) end
  end
  local lowest = tonumber(ARGV[at])
  behind = lowest > 0 and highest >= lowest
  at, count = at + 2 + marks, count - 1
end
`

// raiseLua raises the marks. Where leases are brought from elsewhere, some may be higher already.
const raiseLua = `
for i = 1, marks do
  local last = tonumber(ARGV[fields])
  if highest < last or (tonumber(redis.call('HGET', KEYS[count + 1], ARGV[fields + i]) or 0) or 0) < last then
    redis.call('HSET', KEYS[count + 1], ARGV[fields + i], ARGV[fields])
  end
end
`

// raiseScript raises marks unless they are not below the first ID, and answers the highest that it found.
var raiseScript = link.NewScript("local at, count = 1, #KEYS\n" + marksLua +
	"if not behind then" + raiseLua + "end\nreturn string.format('%.0f', highest)")

// raise raises the marks before a change that a Cluster takes without them only, and then has it stored. Between the two another process
// may give and end a lease with a higher ID, and the change is stored all the same.
func (v *View) raise(store, done func()) {
	m := &v.marks
	r := &link.Request{Script: raiseScript, Keys: []string{m.key}, Args: m.args(), Deadline: v.deadline}
	r.Done = func(answer rueidis.RedisMessage, err error) {
		mark := uint64(0)
		if err == nil {
			mark, err = answer.AsUint64()
		}
		switch {
		case err != nil:
			v.Err = err
			done()
		case m.first > 0 && mark >= m.first:
			v.store.policies.RaiseID(mark)
			v.conflict = true
			v.ask(openScript, nil, done)
		default:
			m.apart = true
			store()
		}
	}
	v.store.send(r)
}
