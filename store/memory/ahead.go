package memory

import "celld/store"

// A table that has its keys from elsewhere, and for one call only, has no queues. Who keeps those who wait asks it by TakeAhead.

// TakeAhead is Take for a call with WAIT whose caller keeps those who wait. It returns true where the call has to wait: then Terms.WaitNS
// is how long at least, if no lease is released; binding is the call for which it waits longest, and againNS when to ask again, as a lease
// flows back by then or the wait is over. What is carried over from another limit is stored. A call that passes within aheadNS, and whose
// limits can be booked, is booked: it is granted, Terms.WaitNS says when, and its answer is that of the moment. One that surely has to wait
// for longer than Terms.MaxNS is denied. The caller sees to it that nobody waits in this table.
func (s *takes) TakeAhead(r *store.TakeRequest, aheadNS uint64, a store.Access) (binding int, againNS uint64, waits bool) {
	r.Err = nil
	l := look{aheadNS: aheadNS}
	if waits = s.takeAny(r, a, turn{look: &l}); waits {
		return l.binding, l.againNS, true
	}
	return 0, 0, false
}
