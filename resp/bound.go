package resp

import (
	"math"

	"celld/store"
)

// boundLease is a lease that ends with the session that took it.
type boundLease struct {
	key   string
	endNS int64 // as far as the session knows
}

// Bounds of what a session keeps of its bound leases: some 10,000.
const (
	maxBoundBytes   = 1 << 20
	boundLeaseBytes = 96 // of one, beside its key
)

// mayBind reports whether there is room for another bound lease. It first forgets those that have ended.
func (s *Session) mayBind(args [][]byte) bool {
	more := int64(boundLeaseBytes)
	for _, arg := range args {
		more += int64(len(arg))
	}
	if s.client.boundBytes.Load()+more > maxBoundBytes {
		for id, l := range s.bound {
			if l.endNS <= s.nowNS {
				s.unbind(id)
			}
		}
	}
	return s.client.boundBytes.Load()+more <= maxBoundBytes
}

// bind notes the lease of a call with BIND.
func (s *Session) bind(r *store.TakeRequest) {
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
	s.bound[id] = boundLease{key, s.nowNS + ns}
	s.client.boundBytes.Add(boundLeaseBytes + int64(len(key)))
}

// unbind forgets a lease.
func (s *Session) unbind(id int64) {
	if l, ok := s.bound[id]; ok {
		delete(s.bound, id)
		s.client.boundBytes.Add(-boundLeaseBytes - int64(len(l.key)))
	}
}

// releaseBound ends the session's leases.
func (s *Session) releaseBound() {
	for id, l := range s.bound {
		s.srv.leases.Release([]byte(l.key), id, store.Access{NowNS: s.srv.clock()})
	}
	s.bound = nil
	s.client.boundBytes.Store(0)
}
