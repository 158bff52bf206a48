package cell

import (
	"math"
	"math/bits"
)

// GCRA for a literal is Limit.Throttle with an interval of period/count, rounded up to whole nanoseconds, and a capacity of
// burst. State.A is the TAT. Any span of time lets through burst + rate × span at most.
func (l *Limit) bucket(st *State, nowNS, cost int64, mode Mode) outcome {
	now, interval, tolerance := uint64(nowNS), uint64(l.gcra.intervalNS), uint64(l.gcra.toleranceNS)
	debt := debtOf(st.A, now)
	var o outcome
	switch {
	case cost == 0:
	case mode == Force:
		debt = owe(debt, interval, uint64(cost))
		st.A = now + debt
	case cost > l.Burst: // its cost in ns may not fit
		o.retryNS = Never
	case debt > tolerance-interval*uint64(cost):
		o.retryNS = debt - (tolerance - interval*uint64(cost))
	case mode == Take:
		debt += interval * uint64(cost)
		st.A = now + debt
	}
	o.resetNS = debt
	o.remaining = l.gcra.remaining(debt, interval)
	return o
}

// bookBucket takes a call at the first instant from now on at which it passes, and returns that instant, or Never.
func (l *Limit) bookBucket(st *State, now, cost uint64) (at uint64) {
	increment, tolerance := uint64(l.gcra.intervalNS)*cost, uint64(l.gcra.toleranceNS)
	debt := debtOf(st.A, now)
	if debt > math.MaxInt64 || debt+increment > math.MaxInt64 {
		return Never
	}
	st.A = now + debt + increment
	return now + debt - min(debt, tolerance-increment)
}

// owe adds to a debt, in ns, what was taken by force. The sum stops at 292 years: no burst takes longer to flow back.
// A debt that was booked behind a block may be longer already.
func owe(debt, interval, cost uint64) uint64 {
	high, increment := bits.Mul64(interval, cost)
	if high != 0 || increment > math.MaxInt64 || debt > math.MaxInt64-increment {
		return max(debt, math.MaxInt64)
	}
	return debt + increment
}

func (l *Limit) giveBucket(st *State, nowNS, n int64) int64 {
	now, interval := uint64(nowNS), uint64(l.gcra.intervalNS)
	if st.A <= now {
		return 0
	}
	debt := st.A - now
	if uint64(n) <= debt/interval {
		st.A -= uint64(n) * interval
		return n
	}
	st.A = now
	return int64(mulDivUp(debt, 1, interval))
}

func (l *Limit) carryBucket(st *State, old *Limit, nowNS int64) {
	if now := uint64(nowNS); st.A > now {
		st.A = now + scale(st.A-now, uint64(l.gcra.toleranceNS), uint64(old.gcra.toleranceNS))
	}
}
