package memory

import (
	"celld/cell"
	"celld/store"
)

// A table that has its keys from elsewhere, and for one call only, has no queues. Who keeps those who wait asks it by TakeAhead.

// look is what is asked of a call that may wait elsewhere.
type look struct {
	aheadNS uint64
	binding int    // out
	againNS uint64 // out
}

// TakeAhead is Take for a call with WAIT whose caller keeps those who wait. It returns true where the call has to wait: then Terms.WaitNS is
// how long at least, if no lease is released; binding is the call that has it wait longest, and againNS when to ask again, as a lease
// flows back by then or the wait is over. What is carried over from another limit is stored. A call that
// passes within aheadNS, and whose limits can be booked, is booked: it is granted, Terms.WaitNS says when, and its answer is that of
// the moment. One that surely has to wait for longer than Terms.MaxNS is denied. The caller sees to it that nobody waits in this table.
func (s *Store) TakeAhead(r *store.TakeRequest, aheadNS uint64, a store.Access) (binding int, againNS uint64, waits bool) {
	asked, locks := s.begin(r)
	defer s.end(asked)
	l := look{aheadNS: aheadNS}
	paid := prepaid{store: s, shard: asked.calls[0].sh}
	r.Taken, r.Err = store.Taken{}, nil
	err := paid.run(locks, a.NowNS, func() (err error) {
		r.Taken, err = s.takeLocked(asked, a, &paid, turn{look: &l})
		return err
	})
	if err == errWaits {
		return l.binding, l.againNS, true
	}
	r.Err = err
	return 0, 0, false
}

// wait has a call wait elsewhere, or books it.
func (l *look) wait(r *pending, binding int, nowNS int64, waitNS uint64) (booked bool, err error) {
	r.Terms.WaitNS = waitNS
	if waitNS <= l.aheadNS && bookable(r.calls) {
		return true, nil
	}
	l.binding, l.againNS = binding, min(waitNS, uint64(max(r.calls[binding].nextDueNS()-nowNS, 0)))
	return false, errWaits
}

// answerAt makes the decisions of calls that were booked those of the moment at which they pass.
func answerAt(calls []call, atNS int64) {
	for i := range calls {
		if c := &calls[i]; !c.Ruled && !c.Limit.Shadow {
			c.Decision = c.Limit.Decide(&c.st, c.sh.TimeOf(c.Limit, atNS), 0, cell.Peek)
			c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
		}
	}
}
