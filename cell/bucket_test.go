package cell_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"celld/cell"
)

func TestEmissionInterval(t *testing.T) {
	for _, c := range []struct {
		name          string
		count, period int64
		want          time.Duration
	}{
		{"30 a minute", 30, 60, 2 * time.Second},
		{"one a second", 1, 1, time.Second},
		{"5000 a second", 5000, 1, 200 * time.Microsecond},
		{"3 a second", 3, 1, 333333333},
		{"7 a minute", 7, 60, 8571428571},
		{"one a day", 1, 86400, 24 * time.Hour},
		{"one a year", 1, 31_536_000, 365 * 24 * time.Hour},
		{"a million a second", 1_000_000, 1, time.Microsecond},
		{"600000000 a second, which is fast by 0.67 ns a call", 600_000_000, 1, 1},
		{"999999999 a second", 999_999_999, 1, 1},
		{"one a nanosecond", 1_000_000_000, 1, 1},
		{"one a nanosecond for a minute", 60_000_000_000, 60, 1},
		{"one in 292 years", 1, maxPeriodSeconds, 9223372036 * time.Second},

		// Past 2^53 ns, 104 days, float64 lacks the digits.
		{"7 in 291 days, 1 ns up", 7, 25_156_720, 3593817142857143},
		{"one in 166 years, 512 ns up", 1, 5_253_233_023, 5_253_233_023*time.Second + 512},
	} {
		limit := mustLimit(t, 0, c.count, c.period)
		if _, d, _ := limit.Throttle(0, aDayIn2027, 1); time.Duration(d.ResetAfterNS) != c.want {
			t.Errorf("%s: a call takes %v, want %v", c.name, time.Duration(d.ResetAfterNS), c.want)
		}
	}
}

func TestNewBucketErrors(t *testing.T) {
	const minInt, maxInt = math.MinInt64, math.MaxInt64
	outOfRange := func(param string, value int64) error { return &cell.RangeError{Param: param, Value: value} }

	for _, c := range []struct {
		name                    string
		maxBurst, count, period int64
		want                    error
	}{
		{"no rate", 15, 0, 60, cell.ErrZeroRate},
		{"no period", 15, 30, 0, cell.ErrZeroRate},
		{"one more than one a nanosecond", 15, 1_000_000_001, 1, cell.ErrZeroRate},
		{"the most calls in a second", 15, maxInt, 1, cell.ErrZeroRate},
		{"a negative rate above one a nanosecond", 15, minInt, 1, cell.ErrZeroRate},

		{"the longest period", 0, 1, 9223372036, nil},
		{"one second longer", 0, 1, 9223372037, outOfRange("period", 9223372037)},
		{"far longer", 0, 1, maxInt, outOfRange("period", maxInt)},
		{"the longest period has no room for a burst", 1, 1, 9223372036, outOfRange("max_burst", 1)},

		{"nothing ever passes", -1, 30, 60, nil},
		{"a burst below that", -2, 30, 60, outOfRange("max_burst", -2)},
		{"a burst far below that", minInt, 30, 60, outOfRange("max_burst", minInt)},
		{"292 years of minutes", 153722866, 1, 60, nil},
		{"one minute more", 153722867, 1, 60, outOfRange("max_burst", 153722867)},
		{"292 years of seconds", 9223372035, 1, 1, nil},
		{"one second more", 9223372036, 1, 1, outOfRange("max_burst", 9223372036)},
		{"292 years of nanoseconds", maxInt - 1, 1_000_000_000, 1, nil},
		{"one nanosecond more", maxInt, 1_000_000_000, 1, outOfRange("max_burst", maxInt)},

		{"negative count", 15, -30, 60, outOfRange("count", -30)},
		{"negative period", 15, 30, -60, outOfRange("period", -60)},
		{"a period of -1", 15, 30, -1, outOfRange("period", -1)},
		{"the longest negative period", 15, 30, minInt, outOfRange("period", minInt)},

		// Of several faults the first in this order is reported.
		{"zero before all", minInt, 0, maxInt, cell.ErrZeroRate},
		{"zero period before all", minInt, -1, 0, cell.ErrZeroRate},
		{"a burst before a negative period", -2, 1, -maxPeriodSeconds, outOfRange("max_burst", -2)},
		{"a longer negative period before a burst", -2, 1, -maxPeriodSeconds - 1, outOfRange("period", -maxPeriodSeconds-1)},
		{"a long period before a burst and a count", -2, -1, maxInt, outOfRange("period", maxInt)},
		{"too fast before a burst", -2, maxInt, 1, cell.ErrZeroRate},
		{"a burst before a count", -2, -1, 60, outOfRange("max_burst", -2)},
		{"the largest burst before a count", maxInt, -1, 60, outOfRange("max_burst", maxInt)},
		{"a count before a period", 15, -30, -60, outOfRange("count", -30)},
		{"a negative count before a large burst", 153722867, -1, 60, outOfRange("count", -1)},
	} {
		limit, err := cell.NewBucket(c.maxBurst, c.count, c.period)
		wantError(t, c.name, err, c.want)
		if err != nil && limit != (cell.Bucket{}) {
			t.Errorf("%s: a limit beside the error: %+v", c.name, limit)
		}
	}
}

func TestQuantityErrors(t *testing.T) {
	const minInt, maxInt = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name          string
		count, period int64
		quantity      int64
		fits          bool
	}{
		{"292 years of seconds", 1, 1, 9223372036, true},
		{"one second more", 1, 1, 9223372037, false},
		{"the same given back", 1, 1, -9223372036, true},
		{"one more given back", 1, 1, -9223372037, false},
		{"292 years of nanoseconds", 1_000_000_000, 1, maxInt, true},
		{"the same given back", 1_000_000_000, 1, -maxInt, true},
		{"one more given back", 1_000_000_000, 1, minInt, false},
		{"one call of 292 years", 1, maxPeriodSeconds, 1, true},
		{"two", 1, maxPeriodSeconds, 2, false},
		{"the most", 30, 60, maxInt, false},
		{"the most given back", 30, 60, minInt, false},
	} {
		const tat = aDayIn2027 + 1
		next, d, err := mustLimit(t, 0, c.count, c.period).Throttle(tat, aDayIn2027, c.quantity)
		if c.fits {
			wantError(t, c.name, err, nil)
			continue
		}
		wantError(t, c.name, err, &cell.RangeError{Param: "quantity", Value: c.quantity})
		if next != tat || d != (cell.Decision{}) {
			t.Errorf("%s: %d, %+v beside the error", c.name, next, d)
		}
	}
}

func TestRangeErrorText(t *testing.T) {
	err := &cell.RangeError{Param: "quantity", Value: -9223372037}
	if got, want := err.Error(), "quantity -9223372037 is out of range"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A zero Bucket is a slip of a program: nothing passes.
func TestZeroLimitAllowsNothing(t *testing.T) {
	var limit cell.Bucket
	for _, quantity := range []int64{1, 5, math.MaxInt64} {
		_, d, err := limit.Throttle(0, aDayIn2027, quantity)
		if err != nil || d != (cell.Decision{Limited: true, RetryAfterNS: cell.Never}) {
			t.Errorf("quantity %d: %+v, %v", quantity, d, err)
		}
	}
	if _, d, err := limit.Throttle(0, aDayIn2027, 0); err != nil || d.Limited {
		t.Errorf("peek: %+v, %v", d, err)
	}
}

func mustLimit(t testing.TB, maxBurst, count, period int64) cell.Bucket {
	t.Helper()
	limit, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		t.Fatalf("NewBucket(%d, %d, %d): %v", maxBurst, count, period, err)
	}
	return limit
}

// wantError compares errors by their types and fields; a sentinel must be the sentinel.
func wantError(t *testing.T, name string, got, want error) {
	t.Helper()
	wantRange, ok := want.(*cell.RangeError)
	if !ok {
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		return
	}
	if gotRange, ok := got.(*cell.RangeError); !ok || *gotRange != *wantRange {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
