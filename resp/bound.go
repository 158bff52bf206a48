package resp

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/resp/command"
	"celld/store"
)

// boundLease is a lease that ends with the session that took it. It ends by the rights that its user had then: who has lost them since
// keeps no lock, and a key that others have changed since leads nowhere else.
type boundLease struct {
	key   string
	endNS int64 // as far as the session knows
	may   store.Right
}

// Bounds of what a session keeps of its bound leases: some 10,000.
const (
	maxBoundBytes   = 1 << 20
	boundLeaseBytes = 104 // of one, beside its key
)

// boundLeases are those that end with a connection. Its own goroutine uses them; any may read their bytes.
type boundLeases struct {
	byID  map[int64]boundLease
	bytes *atomic.Int64 // which its client tells
}

// room reports whether there is room for the lease of a call. It first forgets those that have ended.
func (l *boundLeases) room(c *command.Call) bool {
	more := int64(boundLeaseBytes)
	for _, arg := range c.Args {
		more += int64(len(arg))
	}
	if l.bytes.Load()+more > maxBoundBytes {
		c.Did(len(l.byID), 0)
		for id, lease := range l.byID {
			if lease.endNS <= c.NowNS {
				l.forget(id)
			}
		}
	}
	return l.bytes.Load()+more <= maxBoundBytes
}

// add notes the lease of a call with BIND.
func (l *boundLeases) add(r *store.TakeRequest, may store.Right, nowNS int64) {
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
		l.byID = map[int64]boundLease{}
	}
	key := string(r.Calls[0].Key)
	ns += min(int64(r.Terms.WaitNS), math.MaxInt64-nowNS-ns) // what is reserved is held from its moment on
	l.byID[id] = boundLease{key, nowNS + ns, may}
	l.bytes.Add(boundLeaseBytes + int64(len(key)))
}

// ends notes when a lease ends, or with 0 that it has ended.
func (l *boundLeases) ends(id, endNS int64) {
	lease, bound := l.byID[id]
	switch {
	case !bound:
	case endNS == 0:
		l.forget(id)
	default:
		lease.endNS = endNS
		l.byID[id] = lease
	}
}

func (l *boundLeases) forget(id int64) {
	if lease, ok := l.byID[id]; ok {
		delete(l.byID, id)
		l.bytes.Add(-boundLeaseBytes - int64(len(lease.key)))
	}
}

// release ends all. Many of them end a little later, so that nobody waits for that.
func (l *boundLeases) release(srv *service) {
	if len(l.byID) == 0 {
		return
	}
	r := releases{l.byID, slices.Collect(maps.Keys(l.byID))}
	l.byID = nil
	l.bytes.Store(0)
	srv.later.end(srv, r)
}

// releases are leases to be ended.
type releases struct {
	bound map[int64]boundLease
	ids   []int64
}

// releaseNS is how long leases are ended at a time.
const releaseNS = 1_000_000

// some ends leases for releaseNS, and reports whether there are more.
func (r *releases) some(srv *service) (more bool) {
	for untilNS := srv.clock() + releaseNS; len(r.ids) > 0; r.ids = r.ids[1:] {
		nowNS := srv.clock()
		if nowNS >= untilNS {
			return true
		}
		id := r.ids[0]
		l := r.bound[id]
		_, _ = srv.port.Release([]byte(l.key), id, store.Access{NowNS: nowNS, May: l.may})
	}
	return false
}

// laterReleases ends the leases of sessions that had many, one after the other: 10,000 take 50 ms.
type laterReleases struct {
	mu      sync.Mutex
	left    []releases // the first is being ended
	running sync.WaitGroup

	givingBack atomic.Int64 // calls that were granted when their sessions had gone
}

// end ends leases: at once those for which there is time, the others later.
func (l *laterReleases) end(srv *service, r releases) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) == 0 && !r.some(srv) {
		return
	}
	if l.left = append(l.left, r); len(l.left) == 1 {
		l.running.Go(func() { l.run(srv) })
	}
}

func (l *laterReleases) run(srv *service) {
	defer srv.survive("release of leases")
	for {
		l.mu.Lock()
		if len(l.left) == 0 {
			l.left = nil
			l.mu.Unlock()
			return
		}
		r := l.left[0]
		l.mu.Unlock()
		for r.some(srv) {
			if !srv.stopping.ending.Load() {
				time.Sleep(releaseNS)
			}
		}
		l.mu.Lock()
		l.left = l.left[1:]
		l.mu.Unlock()
	}
}
