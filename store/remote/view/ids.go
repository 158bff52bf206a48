package view

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// IDsKey holds marks. IDs of leases are fencing tokens: those of a key grow, whoever gives them, and whatever clocks do. So the engine
// keeps a mark for each hash slot: the highest ID that a lease under a key of the slot was given. A change that gives an ID is stored
// only if that is above the marks of its keys, and raises them. Else the process learns of the mark, and decides again. Marks stay when
// leases end and keys go.
//
//	celld:ids          5798 1795369162355930      one hash with a field for each slot, at most 16,384: 1.2 MB
//	celld:ids:{4zp}    5798 1795369162355930      in a Cluster one hash for each slot, in that slot
//
// An ID is the time in µs, by the engine's clock or this process's, whichever is ahead, or the next after the last that this process knows.
// So if marks are lost, as after a failover, IDs grow as long as one of the two clocks is right. Its last 8 bits are the process's
// number, which the engine gives. So no two processes give the same ID, even then.
const IDsKey = "celld:ids"

// processes is how many numbers there are. They are given one after the other, so each is given again after 256 starts. The IDs of a
// process keep pace with the clock up to 3,900 leases a second.
const processes = 1 << 8

// numberField is the field of celld:ids that holds the last number given. An engine that has lost it goes on from any.
const numberField = " process"

var numberScript = link.NewScript(`
local n = (tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '') or tonumber(ARGV[2])) + 1
redis.call('HSET', KEYS[1], ARGV[1], n)
return n
`)

// process is this process's number.
type process struct {
	number atomic.Uint64 // random, until the engine has given one
	given  atomic.Bool   // or is requested
}

// RequestNumber asks the engine for this process's number, unless there is one, or the engine is known to refuse writes.
func (s *Views) RequestNumber() {
	if s.Link.Away() != nil || s.Link.Down() != nil || s.process.given.Swap(true) {
		return
	}
	drawn := strconv.FormatUint(s.process.number.Load(), 10)
	r := &link.Request{Script: numberScript, Keys: []string{s.Prefix + IDsKey}, Args: []string{numberField, drawn}, Deadline: s.deadline()}
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
	s.Link.Send(r)
}

// NewID returns an ID above all that this process knows. us is the time of the decision.
func (s *Views) NewID(us int64) uint64 {
	own := time.Now().UnixMicro()
	if s.own != nil {
		own = s.own() / 1000
	}
	return s.Policies.NextIDOf(max(us, own), s.process.number.Load(), processes)
}

// Own reports whether a key, without the prefix, is one of the package's own.
func Own(key string) bool {
	return key == IDsKey || strings.HasPrefix(key, IDsKey+":{") || strings.HasSuffix(key, ticketsSuffix)
}
