// Package bound keeps the leases that end with the connection that took them (CL.TAKE with BIND).
//
//	leases := bound.Leases{Bytes: &client.BoundBytes}
//	if leases.Room(call) {                     // before the limiter is asked
//		leases.Add(request, mayTouch, nowNS)   // when it has answered
//	}
//	leases.Ends(id, endNS)                     // renewed; 0: released
//	leases.Release(later)                      // the connection has gone
//
// A Releaser ends the leases of all connections that have gone. Many of them end a little later, so that nobody waits for that.
package bound

import (
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"celld/resp/command"
	"celld/store"
)

// lease ends by the rights that its user had when it was taken. So a user who has lost them since keeps no lock, and a
// key that others have changed since leads nowhere else.
type lease struct {
	key   string
	endNS int64 // as far as the connection knows
	may   store.Right
}

// MaxBytes bounds what a connection keeps of its leases: some 10,000.
const MaxBytes = 1 << 20

// LeaseBytes is what one takes, beside its key.
const LeaseBytes = 104

// Leases are those that end with one connection. Its own goroutine uses them; any may read Bytes.
type Leases struct {
	byID  map[int64]lease
	Bytes *atomic.Int64 // what they take
}

// Room reports whether there is room for the lease of a call. It first forgets those that have ended.
func (l *Leases) Room(c *command.Call) bool {
	more := int64(LeaseBytes)
	for _, arg := range c.Args {
		more += int64(len(arg))
	}
	if l.Bytes.Load()+more > MaxBytes {
		c.Did(len(l.byID), 0)
		for id, held := range l.byID {
			if held.endNS <= c.NowNS {
				l.forget(id)
			}
		}
	}
	return l.Bytes.Load()+more <= MaxBytes
}

// Add notes the lease of a call with BIND.
func (l *Leases) Add(r *store.TakeRequest, may store.Right, nowNS int64) {
	id := r.Terms.Lease
	if !r.Terms.Bound || id == 0 {
		return
	}
	ns := r.Terms.LeaseNS
	if ns == 0 {
		for i := range r.Calls {
			ns = max(ns, r.Calls[i].Limit.PeriodNS)
		}
	}
	l.forget(id)
	if l.byID == nil {
		l.byID = map[int64]lease{}
	}
	key := string(r.Calls[0].Key)
	ns += min(int64(r.Terms.WaitNS), math.MaxInt64-nowNS-ns) // what is reserved is held from its moment on
	l.byID[id] = lease{key, nowNS + ns, may}
	l.Bytes.Add(LeaseBytes + int64(len(key)))
}

// Ends notes when a lease ends, or with 0 that it has ended.
func (l *Leases) Ends(id, endNS int64) {
	held, is := l.byID[id]
	switch {
	case !is:
	case endNS == 0:
		l.forget(id)
	default:
		held.endNS = endNS
		l.byID[id] = held
	}
}

func (l *Leases) forget(id int64) {
	if held, ok := l.byID[id]; ok {
		delete(l.byID, id)
		l.Bytes.Add(-LeaseBytes - int64(len(held.key)))
	}
}

// Release ends all: at once those for which there is time, the others later.
func (l *Leases) Release(by *Releaser) {
	if len(l.byID) == 0 {
		return
	}
	all := ending{l.byID, slices.Collect(maps.Keys(l.byID))}
	l.byID = nil
	l.Bytes.Store(0)
	by.end(all)
}
