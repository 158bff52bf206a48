package view

import (
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"celld/store/policy"
	"celld/store/remote/link"
)

// marks are what a view's change does to the marks of its keys. Without a key there is nothing to do.
type marks struct {
	key    string
	fields []string
	first  uint64 // the lowest ID that it gives, which must be above the marks; 0: it gives none, but brings leases from elsewhere
	last   uint64
	apart  bool // they are raised already, as a Cluster that moves the hash slot does not take them together with the keys
}

// newMarks says what a change of the view does to marks, of which highest is the highest ID that is new under one of its keys.
func (v *View) newMarks(highest uint64) (m marks) {
	m.first, m.last = v.table.first, max(v.table.last, highest)
	if m.last == 0 || m.last > policy.MostID {
		return marks{}
	}
	m.key = v.views.Link.PerHashSlot(v.keys[0].name)
	for i := range v.keys {
		if slot := strconv.Itoa(int(link.HashSlot(v.keys[i].name))); !slices.Contains(m.fields, slot) {
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

// raise raises the marks before a change that a Cluster takes only without them, and then calls store. Between the two another process may
// give and end a lease with a higher ID, and the change is stored all the same.
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
			v.views.Policies.RaiseID(mark)
			v.state = stateConflict
			v.send(openScript, nil, done)
		default:
			m.apart = true
			store()
		}
	}
	v.views.Link.Send(r)
}
