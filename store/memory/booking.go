package memory

import (
	"celld/cell"
	"celld/store"
)

// reserveBehind has reservations stand in the queues that the call stands behind. Each is spent when its turn comes. The call
// itself then takes what it asks of the others.
func (s *Store) reserveBehind(r *pending, cost int64, a store.Access, waitNS uint64) error {
	behind := int64(0)
	for i := range r.calls {
		if c := &r.calls[i]; c.books(r.calls[i+1:]) && c.ahead != nil {
			behind++
		}
	}
	if behind > 0 && !s.waits.HasPlaces(behind) {
		return store.ErrTooManyWaiters
	}
	r.Terms.WaitNS = waitNS
	return nil
}

// standIn is the reservation of a call behind a queue.
func (c *call) standIn(s *Store, cost int64, a store.Access) {
	r, _ := s.begin(&store.TakeRequest{Calls: []store.Call{{Key: c.Key, Limit: c.Limit, Policy: c.Policy}}, TakeOptions: store.TakeOptions{Cost: cost * c.times}})
	w, _, err := s.newWaiter(r, a, nil)
	if err != nil {
		return
	}
	c.ahead.book(c, a.NowNS, cost*c.times)
	c.ahead.insert(w, cost*c.times)
}

// books reports whether a call that is booked takes from its state itself. Of several that share it the last does, for all.
func (c *call) books(after []call) bool {
	for i := range after {
		if b := &after[i]; !b.Ruled && b.sameKey(c) && b.sharesState(c) {
			return false
		}
	}
	return !c.Ruled && !c.Limit.Shadow
}

// bookable reports whether all calls can be booked ahead.
func bookable(calls []call) bool {
	for i := range calls {
		if !calls[i].Limit.Bookable() {
			return false
		}
	}
	return true
}

// wasBooked lets reservations wait for the states that are waited for, and makes the decisions those of calls that are granted.
func (s *Store) wasBooked(calls []call, cost int64, a store.Access) {
	for i := range calls {
		c := &calls[i]
		if c.booked && c.ahead != nil {
			c.standIn(s, cost, a)
		}
		if !c.Ruled && !c.Limit.Shadow {
			c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
		}
	}
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
