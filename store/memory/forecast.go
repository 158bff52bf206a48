package memory

import (
	"math"

	"celld/cell"
)

// forecast is a state in which all who wait for a window have been booked. Windows need it, as the rest of one that is too small
// for the next call goes to waste. What buckets and warm-ups owe is just the sum of what all wait for.
type forecast struct {
	st    cell.State
	limit *cell.Limit
	stale bool // somebody left, or the state has changed
	looks int  // since it was stale
}

// looksPerBooking is for how many waiters a look may book anew. So a queue of a thousand whose middle leaves is booked anew once
// in 64 looks, and meanwhile its waits are told too long.
const looksPerBooking = 16

// waitNS is how long a call of a limit has to wait behind the queue, at least 1 ns; Never if it never passes. st is the state at nowNS.
// Where nothing can be booked it is what is known: until the first may pass, and until this call would without the others.
func (q *queue) waitNS(l *cell.Limit, st cell.State, nowNS, cost int64) uint64 {
	at := q.sh.TimeOf(l, nowNS)
	switch {
	case !l.Bookable():
		first := uint64(0)
		if q.dueNS != notDue && q.dueNS > nowNS {
			first = uint64(q.dueNS - nowNS)
		}
		return max(l.Forecast(&st, at, cost), first, 1)
	case l.Additive():
		l.Decide(&st, int64(min(max(uint64(at), st.BlockedNS), math.MaxInt64)), q.cost, cell.Force)
	default:
		q.bookAll(l, st, at)
		st = q.ahead.st
	}
	return max(l.Forecast(&st, at, cost), 1)
}

// bookAll books all who wait anew, if the forecast is stale.
func (q *queue) bookAll(l *cell.Limit, st cell.State, at int64) {
	f := &q.ahead
	if !f.stale && f.limit.Shape == l.Shape && f.limit.Params == l.Params {
		return
	}
	if f.looks++; f.looks < len(q.Waiters)/looksPerBooking && f.limit != nil && f.limit.Shape == l.Shape {
		return
	}
	*f = forecast{st: st, limit: l}
	for _, w := range q.Waiters {
		f.limit.Book(&f.st, at, w.cost)
	}
}

// book notes that a call has come to the end of the queue.
func (q *queue) book(l *cell.Limit, st cell.State, nowNS, cost int64) {
	if l.Bookable() && !l.Additive() {
		at := q.sh.TimeOf(l, nowNS)
		q.bookAll(l, st, at)
		q.ahead.limit.Book(&q.ahead.st, at, cost)
	}
}
