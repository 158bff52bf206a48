package cell_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// When the clock and the states are set back, the new clock decides as the old one did. Sub-windows move by whole ones: a limit with
// them decides as up to half a sub-window sooner or later, and no sooner than if its state had not been moved.
func TestAStateThatIsSetBackDecidesAlike(t *testing.T) {
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
		sooner, later := int64(0), int64(0)
		if l.Buckets > 0 {
			half := l.PeriodNS/int64(l.Buckets)/2 + 2 // ns that are rounded
			sooner, later = min(back, half), half
		}
		for _, after := range []int64{0, 1, rapid.Int64Range(0, l.PeriodNS).Draw(t, "after")} {
			for _, cost := range []int64{0, 1, l.Capacity(), drawCost(t, l, cell.Decision{})} {
				is := attempt(&l, shifted, now-back+after, cost, cell.Peek)
				least, most := attempt(&l, st, now+after-sooner, cost, cell.Peek), attempt(&l, st, now+after+later, cost, cell.Peek)
				if is.Remaining < least.Remaining || is.Remaining > most.Remaining || least == most && is != least {
					t.Fatalf("%v at %d, set back by %d, %d after, cost %d:\n  is %+v\n  from %+v\n  to %+v", l, now, back, after, cost,
						is, least, most)
				}
			}
		}
	})
}

// If the clock is set back by less than half a sub-window, however often, nothing is forgotten.
func TestSmallStepsBackForgetNothing(t *testing.T) {
	l, err := cell.ParseLimit("20/300d,algo=slide,buckets=5")
	if err != nil {
		t.Fatal(err)
	}
	st, now := cell.State{}, int64(1_800_000_000_000_000_000)
	decide(&l, &st, now, 20, cell.Take)
	for range 10 {
		now--
		l.Shift(&st, -1)
	}
	if d := attempt(&l, st, now, 1, cell.Peek); !d.Limited {
		t.Errorf("%+v", d)
	}
}

// A state that is shifted with the time decides as one that was not, and so does one that is shifted back again.
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

// Without a shift, a clock that goes back a little lengthens waits by as much, and refills nothing.
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
	if d.Limited && l.BlocksDenied() && st.BlockedNS <= uint64(now) {
		st.BlockedNS = uint64(now + l.BlockNS)
	}
	return st
}
