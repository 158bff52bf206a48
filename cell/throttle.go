package cell

import "math"

// Never is the RetryAfterNS of a call that was not limited, and of one that no wait would let through.
const Never = math.MaxUint64

// Decision is the answer to one call.
type Decision struct {
	Limited      bool
	Limit        int64  // the most that passes at one instant, max burst + 1
	Remaining    int64  // what would pass now, 0..Limit
	RetryAfterNS uint64 // until the same call is allowed, >= 1, or Never
	ResetAfterNS uint64 // until the key is full again: TAT - now, 0 when it is full
}

// Throttle decides on a call of the given quantity at nowNS, Unix nanoseconds and not negative, for a key whose stored
// TAT is tat: 0, or any instant that has passed, for a key that is new. It returns the TAT to store from now on. That
// is tat itself when the call is limited or its quantity is 0 (a peek), so that either changes nothing; it is no later
// than nowNS when nothing is left to remember.
//
// A negative quantity gives back what an earlier call took, up to a full bucket. The error is a *RangeError for a
// quantity whose cost does not fit int64 nanoseconds; then tat is returned as it came.
//
// Everything is measured from now rather than as instants: with a TAT of up to 2^64 and costs of up to 2^63 ns, sums of
// instants would wrap, while none of the differences below can.
func (b Bucket) Throttle(tat uint64, nowNS, quantity int64) (next uint64, d Decision, err error) {
	intervalNS := max(b.intervalNS, 1) // so that a call costs something under the zero Bucket, and does not pass
	if affordable := math.MaxInt64 / intervalNS; quantity > affordable || quantity < -affordable {
		return tat, Decision{}, &RangeError{"quantity", quantity}
	}
	now := uint64(nowNS)
	increment := intervalNS * quantity
	debt := debtOf(tat, now)
	d = Decision{Limit: b.capacity, RetryAfterNS: Never}
	switch {
	case increment > b.toleranceNS:
		d.Limited = true
	case debt > uint64(b.toleranceNS-increment): // for a refund the difference passes int64, and is right as uint64
		d.Limited = true
		d.RetryAfterNS = debt - uint64(b.toleranceNS-increment)
	case increment >= 0:
		debt += uint64(increment)
	default:
		debt -= min(debt, uint64(-increment))
	}
	d.ResetAfterNS = debt
	d.Remaining = b.remaining(debt, uint64(intervalNS))
	if d.Limited || quantity == 0 {
		return tat, d, nil
	}
	return now + debt, d, nil
}
