package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// When the clock is set back and states with it, nobody waits longer by the new clock than he did by the old one, and what
// counts later by the one counts later by the other.
func TestNobodyWaitsLongerAfterAShift(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Take, cell.Force)
		if now < 4*l.PeriodNS {
			return // a clock that goes back to 1970
		}
		back := rapid.OneOf(
			rapid.SampledFrom([]int64{0, 1, l.PeriodNS, l.PeriodNS - 1}),
			rapid.Int64Range(0, min(1000, now/2)),
			rapid.Int64Range(0, now/2),
		).Draw(t, "set back by")
		back = min(back, now-2*l.PeriodNS)
		shifted := clone(st)
		l.Shift(&shifted, -back)
		costs := []int64{0, 1, l.Capacity(), drawCost(t, l, cell.Decision{})}
		for _, later := range []int64{0, 1, rapid.Int64Range(0, l.PeriodNS).Draw(t, "later")} {
			for _, cost := range costs {
				before, after := attempt(&l, st, now+later, cost, cell.Peek), attempt(&l, shifted, now-back+later, cost, cell.Peek)
				if after.Limited && (!before.Limited || after.RetryAfterNS > before.RetryAfterNS) ||
					after.ResetAfterNS > before.ResetAfterNS || after.Remaining < before.Remaining {
					t.Fatalf("%v at %d, set back by %d, %d later, cost %d:\n  was %+v\n  now %+v", l, now, back, later, cost, before, after)
				}
				if l.Buckets == 0 && before != after {
					t.Fatalf("%v at %d, set back by %d, %d later, cost %d:\n  was %+v\n  now %+v", l, now, back, later, cost, before, after)
				}
			}
		}
		if l.Buckets > 0 { // those are as far back as whole sub-windows go
			length := uint64(l.PeriodNS/int64(l.Buckets) + 1)
			before, after := attempt(&l, st, now, 0, cell.Peek), attempt(&l, shifted, now-back, 0, cell.Peek)
			if after.ResetAfterNS+length < before.ResetAfterNS {
				t.Fatalf("%v at %d, set back by %d: %+v became %+v", l, now, back, before, after)
			}
		}
	})
}

// A state that is moved on with the time decides as the one that was not, and so when it is moved back again.
func TestAShiftedStateDecidesAlike(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Take, cell.Force)
		step := int64(1)
		if l.Buckets > 0 { // whole sub-windows are moved exactly
			step = l.PeriodNS
		}
		on := rapid.Int64Range(0, (1<<62)/step).Draw(t, "set forward by") * step
		if end := l.EndNS(&st); end > math.MaxInt64-uint64(on) || now < 2*l.PeriodNS {
			return // past the year 2262, or before 1970
		}
		later, back := clone(st), clone(st)
		l.Shift(&later, on)
		l.Shift(&back, on)
		l.Shift(&back, -on)
		for _, cost := range []int64{0, 1, l.Capacity()} {
			before := attempt(&l, st, now, cost, cell.Peek)
			if after := attempt(&l, later, now+on, cost, cell.Peek); after != before {
				t.Fatalf("%v at %d, set forward by %d, cost %d:\n  was %+v\n  now %+v", l, now, on, cost, before, after)
			}
			if after := attempt(&l, back, now, cost, cell.Peek); after != before {
				t.Fatalf("%v at %d, set forward by %d and back, cost %d:\n  was %+v\n  now %+v", l, now, on, cost, before, after)
			}
		}
	})
}

// Without a shift, a clock that goes back a little waits for as much longer, and refills nothing.
func TestAClockThatGoesBackRefillsNothing(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		st, now := drawHistory(t, l, cell.Take, cell.Take, cell.Force)
		back := rapid.Int64Range(0, min(now, l.PeriodNS)).Draw(t, "back")
		for _, cost := range []int64{0, 1, l.Capacity()} {
			before, after := attempt(&l, st, now, cost, cell.Peek), attempt(&l, st, now-back, cost, cell.Peek)
			if before.Limited && !after.Limited || after.Remaining > before.Remaining {
				t.Fatalf("%v at %d, cost %d: %+v, and %d sooner %+v", l, now, cost, before, back, after)
			}
		}
		d := attempt(&l, st, now-back, 1, cell.Take)
		wantRetry(t, l, blockedBy(l, st, now-back, d), now-back, 1, cell.Take, d)
	})
}

// blockedBy is a state after a decision on it.
func blockedBy(l cell.Limit, st cell.State, now int64, d cell.Decision) cell.State {
	if d.Limited && l.BlockNS > 0 && st.BlockedNS <= uint64(now) {
		st.BlockedNS = uint64(now + l.BlockNS)
	}
	return st
}
