package cell

import (
	"math"
	"math/bits"
)

// Bookable reports that a call can be booked ahead of its moment, and so that the wait of each of many who wait is known.
func (l *Limit) Bookable() bool { return l.Algo == GCRA || l.Algo == Window || l.Algo == Warmup }

// Additive reports that what is booked adds up: whoever comes behind several calls waits as long as behind one of all their costs.
func (l *Limit) Additive() bool { return l.Algo == GCRA || l.Algo == Warmup }

// Forecast is how long a call of this cost has to wait, in ns, if nobody else calls: 0 if it passes now, Never if it never does.
// For a Bookable limit it is what Book would return.
func (l *Limit) Forecast(st *State, nowNS, cost int64) (waitNS uint64) {
	if l.Bookable() {
		after := *st
		return l.Book(&after, nowNS, cost)
	}
	if d := l.Decide(st, nowNS, cost, Peek); d.Limited {
		return d.RetryAfterNS
	}
	return 0
}

// EarnsNS is how long a limit takes for a cost, in ns, at its rate; at most math.MaxInt64.
func (l *Limit) EarnsNS(cost int64) uint64 {
	high, low := bits.Mul64(uint64(cost), uint64(l.PeriodNS))
	if high >= uint64(l.Count) {
		return math.MaxInt64
	}
	earns, _ := bits.Div64(high, low, uint64(l.Count))
	return min(earns, math.MaxInt64)
}

// Book takes a call at the first moment at which it passes, and returns how long that is from now, in ns. Calls that are decided
// or booked later come after it. A call that never passes, or only centuries from now, is not booked: then it returns Never.
// The limit must be Bookable.
func (l *Limit) Book(st *State, nowNS, cost int64) (waitNS uint64) {
	if cost == 0 {
		return 0
	}
	from := max(uint64(nowNS), st.BlockedNS) // nothing passes before the end of a block
	var at uint64
	switch {
	case cost > l.Capacity() && l.Algo != Warmup || from > latestBooked:
		return Never
	case l.Algo == Warmup:
		at = l.bookWarmup(st, from, uint64(cost))
	case l.Algo == Window:
		at = l.bookWindow(st, from, uint64(cost))
	default:
		at = l.bookBucket(st, from, uint64(cost))
	}
	if at == Never {
		return Never
	}
	return at - uint64(nowNS)
}

// latestBooked is the last moment for which a call is booked, in Unix ns: two periods later is still an instant.
const latestBooked = math.MaxInt64 - 2*MaxPeriodNS
