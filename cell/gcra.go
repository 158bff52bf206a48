package cell

import (
	"math"
	"math/bits"
)

func mul(a, b uint64) (high, low uint64)               { return bits.Mul64(a, b) }
func div(high, low, by uint64) (quotient, rest uint64) { return bits.Div64(high, low, by) }

// GCRA for a literal is Limit.Throttle with an interval of period/count, rounded up to whole nanoseconds, and a capacity of
// burst. State.A is the TAT. Any span of time lets through burst + rate × span at most.
func (l *Literal) bucket(st *State, nowNS, cost int64, mode Mode) Decision {
	if mode == Force {
		high, increment := mul(uint64(l.gcra.intervalNS), uint64(cost))
		tat := max(st.A, uint64(nowNS))
		if high != 0 || increment > math.MaxInt64-min(tat, math.MaxInt64) {
			tat = math.MaxInt64 // as far as debt goes: the year 2262
		} else {
			tat += increment
		}
		st.A = tat
		mode, cost = Peek, 0
	}
	if cost > l.Burst { // its cost in ns may not fit
		_, d, _ := l.gcra.Throttle(st.A, nowNS, 0)
		d.Limited = true
		return d
	}
	next, d, _ := l.gcra.Throttle(st.A, nowNS, cost) // no error: burst intervals fit
	if d.Limited {
		return d
	}
	if mode == Peek {
		_, before, _ := l.gcra.Throttle(st.A, nowNS, 0)
		d.Remaining, d.ResetAfterNS = before.Remaining, before.ResetAfterNS
		return d
	}
	st.A = next
	return d
}

func (l *Literal) giveBucket(st *State, nowNS, n int64) int64 {
	now, interval := uint64(nowNS), uint64(l.gcra.intervalNS)
	if st.A <= now {
		return 0
	}
	debt := st.A - now
	n = int64(min(uint64(n), (debt+interval-1)/interval))
	st.A -= min(debt, uint64(n)*interval)
	return n
}

func (l *Literal) carryBucket(st *State, old *Literal, nowNS int64) {
	if now := uint64(nowNS); st.A > now {
		debt := scale(st.A-now, uint64(l.gcra.toleranceNS), uint64(old.gcra.toleranceNS))
		st.A = now + min(debt, math.MaxInt64-min(now, math.MaxInt64))
	}
}
