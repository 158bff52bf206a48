package memory

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
)

// reserve books a take. If somebody waits for a state, a reservation stands behind them, and takes when it is first. From the other states
// the take itself takes at once.
func (t *take) reserve(waitNS uint64) error {
	if t.behind && t.Terms.LeaseNS > 0 { // a lease would hold what is not taken yet
		return nil
	}
	behind := int64(0)
	for i := range t.calls {
		if c := &t.calls[i]; c.books(t.calls[i+1:]) && c.ahead != nil {
			behind++
		}
	}
	if behind > 0 && !t.of.waits.HasRoom(behind) {
		return store.ErrTooManyWaiters
	}
	t.Terms.WaitNS = waitNS
	t.book()
	return nil
}

// book grants a take ahead.
func (t *take) book() { t.booked, t.Taken.Limited = true, false }

// books reports whether a call that is booked takes from its state itself. Of several that share it the last does, for all.
func (c *call) books(after []call) bool {
	for i := range after {
		if b := &after[i]; !b.Ruled && b.sameKey(c) && b.sharesState(c) {
			return false
		}
	}
	return !c.Ruled && !c.idle && !c.Limit.Shadow
}

// bookable reports whether all calls can be booked ahead.
func (t *take) bookable() bool {
	for i := range t.calls {
		if !t.calls[i].Limit.Bookable() {
			return false
		}
	}
	return true
}

// answerBooked puts reservations into the lines of states that others wait for, and makes the decisions those of granted calls: for a
// caller elsewhere, at the moment at which they pass.
func (t *take) answerBooked() {
	for i := range t.calls {
		c := &t.calls[i]
		if c.booked && c.ahead != nil {
			t.standIn(c)
		}
		if c.Ruled || c.Limit.Shadow {
			continue
		}
		if t.from.elsewhere != nil {
			c.Decision = c.peek(int64(shard.LaterNS(t.a.NowNS, int64(t.Terms.WaitNS))), 0)
		}
		c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
	}
}

// standIn puts a reservation for a call behind a line.
func (t *take) standIn(c *call) {
	cost := c.total(t.cost)
	calls := []store.Call{{Key: c.Key, Limit: c.Limit, Policy: c.Policy, Seen: c.Seen}}
	r := &store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost}}
	w, _, err := t.of.newWaiter(r, t.a, nil)
	if err != nil {
		return
	}
	c.ahead.Book(c.Limit, c.st, t.a.NowNS, cost)
	c.ahead.Add(w, cost)
}
