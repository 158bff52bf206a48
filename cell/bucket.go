package cell

import (
	"errors"
	"fmt"
	"math"
)

const nsPerSecond = 1_000_000_000

// MaxPeriodSeconds is the longest period: 292 years, the most whole seconds that int64 nanoseconds hold.
const MaxPeriodSeconds = math.MaxInt64 / nsPerSecond

// ErrZeroRate reports a limit with no rate: a count or a period of 0, or more than one call a nanosecond.
var ErrZeroRate = errors.New("zero rate")

// RangeError reports a parameter that is negative where that means nothing, or so large that the arithmetic would not
// fit 64 bits. redis-cell lets those products wrap, which frees or locks a key.
type RangeError struct {
	Param string // "max_burst", "count", "period", "quantity" or "tokens"
	Value int64
}

func (e *RangeError) Error() string { return fmt.Sprintf("%s %d is out of range", e.Param, e.Value) }

// Bucket is a rate and a burst, checked and ready to decide with. Its zero value allows nothing but quantity 0.
type Bucket struct {
	capacity    int64 // max burst + 1: the most that passes at one instant
	intervalNS  int64 // emission interval, >= 1
	toleranceNS int64 // intervalNS * capacity
}

// Capacity is the most that passes at one instant: max burst + 1.
func (b Bucket) Capacity() int64 { return b.capacity }

// NewBucket returns the bucket of count calls in each period of so many seconds, with maxBurst more at once than one.
//
// maxBurst is -1 (nothing ever passes) or more, count 1 to period × 10^9, period 1 to MaxPeriodSeconds, and
// (maxBurst + 1) × period / count at most 292 years. Else the error is ErrZeroRate or a *RangeError.
//
// The emission interval is period / count in float64, truncated to whole nanoseconds, as in redis-cell
// (src/cell/mod.rs, Rate::per_period): a rate that does not divide its period is fast by less than 1 ns a call
// (600,000,001 a second run at 10^9), and with periods past 2^53 ns, 104 days, float64 adds up to 512 ns either way.
func NewBucket(maxBurst, count, period int64) (Bucket, error) {
	if count == 0 || period == 0 {
		return Bucket{}, ErrZeroRate
	}
	if period > MaxPeriodSeconds || period < -MaxPeriodSeconds {
		return Bucket{}, &RangeError{"period", period}
	}
	intervalNS := int64(float64(period*nsPerSecond) / float64(count))
	switch {
	case intervalNS == 0:
		return Bucket{}, ErrZeroRate
	case maxBurst < -1 || maxBurst == math.MaxInt64:
		return Bucket{}, &RangeError{"max_burst", maxBurst}
	case count < 0:
		return Bucket{}, &RangeError{"count", count}
	case period < 0:
		return Bucket{}, &RangeError{"period", period}
	case maxBurst+1 > math.MaxInt64/intervalNS:
		return Bucket{}, &RangeError{"max_burst", maxBurst}
	}
	return Bucket{capacity: maxBurst + 1, intervalNS: intervalNS, toleranceNS: intervalNS * (maxBurst + 1)}, nil
}

// debtOf is what is taken and has not flowed back at now, in ns.
func debtOf(tat, now uint64) uint64 {
	if tat > now {
		return tat - now
	}
	return 0
}

// remaining is how many calls of this interval a debt leaves.
func (b Bucket) remaining(debt, interval uint64) int64 {
	if debt < uint64(b.toleranceNS) {
		return int64((uint64(b.toleranceNS) - debt) / interval)
	}
	return 0
}
