package store

import (
	"bytes"
	"math"

	"celld/cell"
)

// reserveBehind has reservations stand in the queues that the call stands behind. Each is spent when its turn comes. The call
// itself then takes what it asks of the others.
func (s *Store) reserveBehind(r *TakeRequest, cost int64, a Access, waitNS uint64) error {
	behind := int64(0)
	for i := range r.Calls {
		if c := &r.Calls[i]; c.books(r.Calls[i+1:]) && c.ahead != nil {
			behind++
		}
	}
	if behind > 0 && s.waiting.held.Load()+behind > s.waiting.most.Load() {
		return ErrTooManyWaiters
	}
	r.Terms.WaitNS = waitNS
	return nil
}

// standIn is the reservation of a call behind a queue.
func (c *Call) standIn(s *Store, cost int64, a Access) {
	key := bytes.Clone(c.Key)
	r := &TakeRequest{Calls: []Call{{Key: key, Limit: c.Limit, Policy: c.Policy}}, TakeOptions: TakeOptions{Cost: cost * c.times}}
	names, _, err := s.policiesOf(r.Calls)
	if err != nil {
		return
	}
	w, err := s.newWaiter(r, a, nil)
	if err != nil {
		return
	}
	w.policies, w.version, w.locks = names, math.MaxUint64, s.start(&r.Calls[0])
	c.ahead.book(c, a.NowNS, cost*c.times)
	c.ahead.insert(w, cost*c.times)
}

// books reports whether a call that is booked takes from its state itself. Of several that share it the last does, for all.
func (c *Call) books(after []Call) bool {
	for i := range after {
		if b := &after[i]; !b.ruled && b.sameKey(c) && b.sharesState(c) {
			return false
		}
	}
	return !c.ruled && !c.Limit.Shadow
}

// bookable reports whether all calls can be booked ahead.
func bookable(calls []Call) bool {
	for i := range calls {
		if !calls[i].Limit.Bookable() {
			return false
		}
	}
	return true
}

// wasBooked lets reservations wait for the states that are waited for, and makes the decisions those of calls that are granted.
func (s *Store) wasBooked(calls []Call, cost int64, a Access) {
	for i := range calls {
		c := &calls[i]
		if c.booked && c.ahead != nil {
			c.standIn(s, cost, a)
		}
		if !c.ruled && !c.Limit.Shadow {
			c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
		}
	}
}
