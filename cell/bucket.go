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

// RangeError reports a parameter that must not be negative, or that is too large for arithmetic in 64 bits. In redis-cell such
// products wrap, which frees or locks a key.
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

// NewBucket returns a bucket that allows count calls in each period, which is in seconds, and maxBurst + 1 calls at once.
//
// maxBurst is -1 (nothing ever passes) or more, count 1 to period × 10^9, period 1 to MaxPeriodSeconds, and
// (maxBurst + 1) × period / count at most 292 years. Else the error is ErrZeroRate or a *RangeError.
//
// The emission interval is period / count in float64, truncated to whole nanoseconds, as in redis-cell
// (src/cell/mod.rs, Rate::per_period). A rate that does not divide its period admits each call up to 1 ns early:
// 600,000,001 a second run at 10^9. With periods over 2^53 ns, 104 days, float64 adds an error of up to 512 ns.
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

// debtOf is how far a TAT lies ahead of now, in ns: what was taken and has not flowed back.
func debtOf(tat, now uint64) uint64 {
	if tat > now {
		return tat - now
	}
	return 0
}

// remaining is how many calls of this interval still pass with this debt, both in ns.
func (b Bucket) remaining(debt, interval uint64) int64 {
	if debt < uint64(b.toleranceNS) {
		return int64((uint64(b.toleranceNS) - debt) / interval)
	}
	return 0
}

// IntervalNS is the emission interval in ns: what one call costs. ToleranceNS is the most debt with which a call passes, its own cost
// included. Both are for those who decide elsewhere, and must decide the same.
func (b Bucket) IntervalNS() int64  { return max(b.intervalNS, 1) }
func (b Bucket) ToleranceNS() int64 { return b.toleranceNS }
