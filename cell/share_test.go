package cell_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"celld/cell"
)

// All shares of a bucket together let through no more than its burst and rate, if each gets a call of the burst.
func TestSharesOfABucketAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(2, 20).Draw(t, "shares")
		whole := rapid.Custom(drawSetting).Filter(func(s setting) bool { return s.capacity >= n }).Draw(t, "whole")
		share := whole.Share(n)
		tats, now := make([]uint64, n), int64(aDayIn2027)
		var passed []call
		var d cell.Decision
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = later(now, whole.drawWait(t, d))
			i := rapid.Int64Range(0, n-1).Draw(t, "who")
			_, left, _ := share.Throttle(tats[i], now, 0)
			quantity := rapid.SampledFrom([]int64{1, max(left.Remaining, 1), left.Remaining + 1}).Draw(t, "quantity")
			var err error
			if tats[i], d, err = share.Throttle(tats[i], now, quantity); err == nil && !d.Limited {
				passed = append(passed, call{now, quantity})
			}
		}
		for _, from := range passed {
			for _, to := range passed {
				if to.at < from.at {
					continue
				}
				debt := big.NewInt(in(passed, from.at-1, to.at) - whole.capacity)
				if debt.Mul(debt, big.NewInt(whole.intervalNS)).Cmp(big.NewInt(to.at-from.at)) > 0 {
					t.Fatalf("%d shares of %+v: more than burst and rate from %d to %d: %v", n, whole, from.at, to.at, passed)
				}
			}
		}
	})
}

// A share of any bucket lets a call through, and another once n intervals have passed, or after the longest time in int64.
func TestAShareOfABucketIsACallAtLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, n := drawSetting(t), rapid.Int64Range(-1, 1_000_000).Draw(t, "shares")
		share := whole.Share(n)
		if n < 2 && share != whole.Bucket {
			t.Fatalf("1 of %d of %+v is %+v", n, whole, share)
		}
		tat, d, err := share.Throttle(0, aDayIn2027, 1)
		if err != nil || d.Limited != (whole.capacity == 0) || d.Limit > max(whole.capacity/max(n, 1), min(whole.capacity, 1)) {
			t.Fatalf("1 of %d of %+v: %+v, %v", n, whole, d, err)
		}
		want := new(big.Int).Mul(big.NewInt(whole.intervalNS), big.NewInt(max(n, 1)))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if _, d, _ = share.Throttle(tat, aDayIn2027, 1); d.Limit == 1 && d.RetryAfterNS != want.Uint64() {
			t.Fatalf("1 of %d of %+v: %+v, want to retry after %v ns", n, whole, d, want)
		}
	})
}

// All shares of a limit together let through no more than it promises, if each gets a call of the count and the burst.
func TestSharesOfALimitAddUp(t *testing.T) {
	eachAlgorithm(t, func(t *rapid.T, a algorithm, l cell.Limit) {
		n := rapid.Int64Range(2, 20).Draw(t, "shares")
		if l.Count < n || l.Capacity() < n {
			return
		}
		share := l.Share(n)
		states, now := make([]cell.State, n), drawInstant(t)
		var passed []call
		var d cell.Decision
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += drawPause(t, l, now, d)
			st := &states[rapid.Int64Range(0, n-1).Draw(t, "who")]
			cost := drawCost(t, share, attempt(&share, *st, now, 0, cell.Peek))
			if d = decide(&share, st, now, cost, cell.Take); !d.Limited && cost > 0 {
				passed = append(passed, call{now, cost})
			}
		}
		if l.Algo == cell.Window && !l.Aligned() { // each share's windows begin when it is first asked
			twiceInAnySpan(t, l, passed)
		} else {
			a.bound(t, l, passed)
		}
	})
}

// A share of any limit is a limit of the same shape, and lets a call through.
func TestAShareOfALimitIsACallAtLeast(t *testing.T) {
	draws := append(slices.Clone(algorithms), algorithm{name: "warmup", draw: drawWarmup})
	for _, a := range draws {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l, n := drawOptions(t, a.draw(t)), rapid.Int64Range(-1, 1_000_000).Draw(t, "shares")
				share := l.Share(n)
				if n < 2 && share != l || mustLiteral(t, share.String()) != share || share.Shape != l.Shape || share.BlockNS != l.BlockNS ||
					share.Shadow != l.Shadow {
					t.Fatalf("1 of %d of %v is %v", n, l, share)
				}
				if n >= 2 && (share.Count > max(l.Count/n, 1) || share.Capacity() > max(l.Capacity()/n, 1)) {
					t.Fatalf("1 of %d of %v is %v", n, l, share)
				}
				if d := attempt(&share, cell.State{}, aDayIn2027, 1, cell.Take); d.Limited {
					t.Fatalf("1 of %d of %v lets nothing through: %+v", n, l, d)
				}
			})
		})
	}
}
