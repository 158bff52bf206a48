package memory

import "celld/store"

// A table that gets its keys from elsewhere, for one call only, has no lines. Its caller keeps those who wait, and asks by TakeAhead.

// TakeAhead is Take for a call with WAIT whose caller keeps those who wait. It returns true if the call has to wait. Then Terms.WaitNS is
// how long at least, if no lease is released; binding is the call with the longest wait; and againNS is when to ask again, as a lease flows
// back by then or the wait is over. States that are carried over from other limits are stored.
//
// A call that passes within aheadNS, and whose limits can be booked, is booked: it is granted, Terms.WaitNS says when, and its answer is
// that of this moment. A call that surely waits for longer than Terms.MaxNS is denied. The caller makes sure that nobody waits in this
// table.
func (s *takes) TakeAhead(r *store.TakeRequest, aheadNS uint64, a store.Access) (binding int, againNS uint64, waits bool) {
	r.Err = nil
	l := lookahead{aheadNS: aheadNS}
	if waits = s.takeAny(r, a, caller{elsewhere: &l}); waits {
		return l.binding, l.againNS, true
	}
	return 0, 0, false
}
