package cell_test

import (
	"errors"
	"testing"
	"time"

	"celld/cell"
)

// Each test here is of a fault of redis-cell 0.5.0 that package cell does not share.

// There a value that no i64 holds kills the server; a TAT is any uint64.
func TestAnyStoredTATIsAState(t *testing.T) {
	limit := mustLimit(t, 5, 1, 60)
	for _, tat := range []uint64{0, 1, aDayIn2027, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		for _, quantity := range []int64{-1, 0, 1} {
			if _, d, err := limit.Throttle(tat, aDayIn2027, quantity); err != nil || d.Remaining < 0 || d.Remaining > 6 {
				t.Errorf("TAT %d, quantity %d: %+v, %v", tat, quantity, d, err)
			}
		}
	}
}

// There 18446744074 seconds of cost wrap to 0.29 s, which passes for ever, and 9223372037 to a TAT 292 years ahead.
func TestProductsDoNotWrap(t *testing.T) {
	limit := mustLimit(t, 5, 1, 1)
	for _, quantity := range []int64{18446744074, 9223372037, 4611686018427387904, 307445734561825861} {
		tat, _, err := limit.Throttle(0, aDayIn2027, quantity)
		if e, ok := errors.AsType[*cell.RangeError](err); !ok || *e != (cell.RangeError{Param: "quantity", Value: quantity}) {
			t.Errorf("quantity %d: %v", quantity, err)
		}
		if _, d, _ := limit.Throttle(tat, aDayIn2027, 6); d.Limited {
			t.Errorf("quantity %d has changed the key: %+v", quantity, d)
		}
	}
	for _, p := range []params{
		{9223372036, 1, 1}, {153722867, 1, 60}, {4611686018427387904, 1, 1}, {2147483647, 1, 2147483647},
		{9223372036854775807, 1, 60}, {15, 1, 9223372037}, {15, 30, 9223372036854775807},
	} {
		if _, err := cell.NewBucket(p.maxBurst, p.count, p.period); err == nil {
			t.Errorf("%+v is a limit", p)
		}
	}
}

// There these say limited with a limit below zero, or pass where two are negative.
func TestNegativeParametersAreErrors(t *testing.T) {
	for _, c := range []struct {
		params
		want string
	}{
		{params{-2, 1, 60}, "max_burst"},
		{params{15, -1, 60}, "count"},
		{params{15, 1, -60}, "period"},
		{params{-5, -1, 60}, "max_burst"},
		{params{-5, 1, -60}, "max_burst"},
		{params{15, -1, -60}, "count"},
	} {
		if _, err := cell.NewBucket(c.maxBurst, c.count, c.period); fault(err) != c.want {
			t.Errorf("%+v: %v, want an error about %s", c.params, err, c.want)
		}
	}
}

// There a refund past full fails and leaves the key for ever, or locks it for 394 years.
func TestARefundPastFullIsFull(t *testing.T) {
	limit := mustLimit(t, 5, 1, 60)
	full := cell.Decision{Limit: 6, Remaining: 6, RetryAfterNS: cell.Never}
	for _, quantity := range []int64{-1, -2, -6, -153722867} {
		if tat, d, err := limit.Throttle(0, aDayIn2027, quantity); err != nil || d != full || tat > aDayIn2027 {
			t.Errorf("%d on a new key: TAT %d, %+v, %v", quantity, tat, d, err)
		}
		tat, _, _ := limit.Throttle(0, aDayIn2027, 1)
		if tat, d, err := limit.Throttle(tat, aDayIn2027, quantity); err != nil || d != full || tat > aDayIn2027 {
			t.Errorf("%d after 1: TAT %d, %+v, %v", quantity, tat, d, err)
		}
	}
}

// There a key lives for whole milliseconds, and a burst of 4 at 5000 a second, 1 ms in all, is new again too soon:
// nearly twice the rate passes. A caller every 50 µs for a second, which is four times the rate, gets the rate.
func TestABucketOfAMillisecondKeepsItsRate(t *testing.T) {
	limit := mustLimit(t, 4, 5000, 1)
	var tat uint64
	passed := 0
	for at := time.Duration(0); at < time.Second; at += 50 * time.Microsecond {
		next, d, _ := limit.Throttle(tat, aDayIn2027+int64(at), 1)
		if !d.Limited {
			passed++
		}
		tat = next
	}
	if want := 5 + 4999; passed != want { // the burst, and one each 200 µs after the first call
		t.Errorf("%d passed, want %d", passed, want)
	}
}

// There a wait below 1 ms is told as 0, and callers spin.
func TestLimitedAlwaysSaysToWait(t *testing.T) {
	limit := mustLimit(t, 0, 5000, 1)
	tat, _, _ := limit.Throttle(0, aDayIn2027, 1)
	for wait := int64(1); wait <= 200_000; wait++ {
		_, d, _ := limit.Throttle(tat, aDayIn2027+200_000-wait, 1)
		if !d.Limited || d.RetryAfterNS != uint64(wait) {
			t.Fatalf("%d ns too early: %+v", wait, d)
		}
	}
}

// There remaining counts whole microseconds: 1666 of 1001, or 9223372036854775807 above 10^6 a second.
func TestRemainingIsExact(t *testing.T) {
	for _, c := range []struct {
		params
		want int64
	}{
		{params{1000, 600_001, 1}, 1000},
		{params{1_000_000, 300_000, 1}, 1_000_000},
		{params{1_000_000, 501_000, 1}, 1_000_000},
		{params{10, 2_000_000, 1}, 10},
		{params{1000, 1_000_001, 1}, 1000},
		{params{10, 999_999_999, 1}, 10},
		{params{1, 1_000_000_000, 1}, 1},
	} {
		limit := mustLimit(t, c.maxBurst, c.count, c.period)
		if _, d, _ := limit.Throttle(0, aDayIn2027, 1); d.Limited || d.Remaining != c.want {
			t.Errorf("%+v: %+v, want %d to remain", c.params, d, c.want)
		}
	}
}

// There a restart makes every call again at that moment. The TAT is all there is to a key: kept over 20 s without a
// server, it has let 10 of 16 flow back.
func TestTheTATIsAllThereIsToKeep(t *testing.T) {
	limit := mustLimit(t, 15, 30, 60)
	tat, _, _ := limit.Throttle(0, aDayIn2027, 16)
	_, d, _ := limit.Throttle(tat, aDayIn2027+int64(20*time.Second), 0)
	if want := (cell.Decision{Limit: 16, Remaining: 10, RetryAfterNS: cell.Never, ResetAfterNS: 12e9}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
}
