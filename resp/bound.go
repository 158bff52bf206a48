package resp

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// mayBind reports whether there is room for another bound lease. It first forgets those that have ended.
func (s *Session) mayBind(args [][]byte) bool {
	more := int64(boundLeaseBytes)
	for _, arg := range args {
		more += int64(len(arg))
	}
	if s.client.BoundBytes.Load()+more > maxBoundBytes {
		s.scratch.slice.did(len(s.bound), 0)
		for id, l := range s.bound {
			if l.endNS <= s.nowNS {
				s.unbind(id)
			}
		}
	}
	return s.client.BoundBytes.Load()+more <= maxBoundBytes
}

// bind notes the lease of a call with BIND.
func (s *Session) bind(r *store.TakeRequest, may store.Right) {
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
	s.unbind(id)
	if s.bound == nil {
		s.bound = map[int64]boundLease{}
	}
	key := string(r.Calls[0].Key)
	ns += min(int64(r.Terms.WaitNS), math.MaxInt64-s.nowNS-ns) // what is reserved is held from its moment on
	s.bound[id] = boundLease{key, s.nowNS + ns, may}
	s.client.BoundBytes.Add(boundLeaseBytes + int64(len(key)))
}

// unbind forgets a lease.
func (s *Session) unbind(id int64) {
	if l, ok := s.bound[id]; ok {
		delete(s.bound, id)
		s.client.BoundBytes.Add(-boundLeaseBytes - int64(len(l.key)))
	}
}

// releaseBound ends the session's leases. Many of them end a little later, so that nobody waits for that.
func (s *Session) releaseBound() {
	if len(s.bound) == 0 {
		return
	}
	r := releases{s.bound, slices.Collect(maps.Keys(s.bound))}
	s.bound = nil
	s.client.BoundBytes.Store(0)
	s.srv.later.end(s.srv, r)
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
