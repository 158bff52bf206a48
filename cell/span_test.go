package cell_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// The promise of a rate limiter: between any two calls that passed, both included, no more passed than the burst and
// what flowed back meanwhile. Every pair of calls is looked at, however the caller timed them.
func TestNeverMoreThanTheRateOverAnySpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		now := rapid.Int64Range(0, 2_000_000_000_000_000_000).Draw(t, "start")

		type call struct{ at, quantity int64 }
		var passed []call
		var tat uint64
		var d cell.Decision
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now = later(now, s.drawWait(t, d))
			quantity := s.drawTake(t)
			var err error
			if tat, d, err = s.Throttle(tat, now, quantity); err != nil {
				t.Fatal(err)
			}
			if !d.Limited {
				passed = append(passed, call{now, quantity})
			}
		}
		for i := range passed {
			taken := new(big.Int)
			for _, last := range passed[i:] {
				cost := new(big.Int).Mul(big.NewInt(last.quantity), big.NewInt(s.intervalNS))
				taken.Add(taken, cost)
				allowance := new(big.Int).Add(big.NewInt(s.toleranceNS), big.NewInt(last.at-passed[i].at))
				if taken.Cmp(allowance) > 0 {
					t.Fatalf("%v ns taken from %d to %d, and the limit is %v ns", taken, passed[i].at, last.at, allowance)
				}
			}
		}
	})
}

// And no less: a new key passes max burst + 1 at one instant, in one call or many, and not one more.
func TestTheWholeBurstPassesAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		const now = aDayIn2027
		var tat uint64
		for left := s.capacity; left > 0; {
			quantity := rapid.Int64Range(max(1, left/4), left).Draw(t, "quantity")
			var d cell.Decision
			tat, d, _ = s.Throttle(tat, now, quantity)
			if left -= quantity; d.Limited || d.Remaining != left {
				t.Fatalf("%+v after %d of %d", d, s.capacity-left, s.capacity)
			}
		}
		if _, d, _ := s.Throttle(tat, now, 1); !d.Limited {
			t.Fatalf("one more than %d passes: %+v", s.capacity, d)
		}
	})
}

// A caller that asks again when it was told gets exactly one call through in each emission interval.
func TestAPatientCallerGetsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetting(t)
		if s.capacity == 0 {
			return // nothing ever passes
		}
		tat, d, _ := s.Throttle(0, 0, s.capacity)
		for now := int64(0); now <= 9_000_000_000_000_000_000-s.intervalNS && now < 20*s.intervalNS; {
			if tat, d, _ = s.Throttle(tat, now, 1); !d.Limited || d.RetryAfterNS != uint64(s.intervalNS) {
				t.Fatalf("at %d: %+v, want to wait %d", now, d, s.intervalNS)
			}
			now += int64(d.RetryAfterNS)
			if tat, d, _ = s.Throttle(tat, now, 1); d.Limited {
				t.Fatalf("at %d: %+v, though told to call now", now, d)
			}
		}
	})
}
