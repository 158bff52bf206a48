package memory

import (
	"slices"
	"sync"

	"celld/store"
	"celld/store/memory/shard"
	"celld/store/waiting"
)

// takes decides on calls of limits, and keeps those who wait.
type takes struct {
	*shard.Shards
	waits  waiting.Room[*shard.Waiter]
	unused sync.Pool // of takes that are over
	now    func() int64
	newID  func(us int64) uint64
}

// take is a Take under decision, with what the store knows of its calls.
type take struct {
	*store.TakeRequest
	of    *takes
	calls []call

	a      store.Access
	paid   *shard.Prepaid
	own    shard.Prepaid // where nobody else has paid
	from   caller
	cost   int64 // of a call: UpTo may have lowered it
	ruled  bool  // a rule denies it
	behind bool  // a call stands behind those who wait for its state
	paused bool  // a rule keeps it waiting
	booked bool  // it is granted ahead
}

// begin starts on a request, and returns the shards of its keys. end takes it back.
func (s *takes) begin(r *store.TakeRequest) (t *take, locks shard.ShardSet) {
	t, ok := s.unused.Get().(*take)
	if !ok {
		t = &take{}
	}
	t.TakeRequest, t.of = r, s
	t.calls = slices.Grow(t.calls, len(r.Calls))[:len(r.Calls)] // all zero
	for i := range t.calls {
		s.start(&t.calls[i], &r.Calls[i])
		locks |= s.ShardSetOf(t.calls[i].hash)
	}
	return t, locks
}

func (s *takes) end(t *take) {
	clear(t.calls)
	t.TakeRequest, t.paid, t.from, t.a.May, t.calls = nil, nil, caller{}, nil, t.calls[:0]
	s.unused.Put(t)
}

// AheadOf is store.Store's: nothing is taken ahead of calls that are decided here.
func (s *takes) AheadOf(*store.Call) int64 { return 0 }

// start notes what a call is looked up by.
func (s *takes) start(c *call, of *store.Call) {
	of.Ruled = false
	c.Call, c.hash, c.code = of, s.Hash(of.Key), of.Limit.Code()
	c.sh = s.ShardOf(c.hash)
}

// leaseNS is how long what is granted is held; 0: it is not, or as long as conc says.
func (t *take) leaseNS() int64 {
	if t.Terms == nil {
		return 0
	}
	return t.Terms.LeaseNS
}
