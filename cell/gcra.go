package cell

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"celld/cell/lease"
)

// maxPeriodSeconds is the longest period: 292 years, the most whole seconds that int64 nanoseconds hold.
const maxPeriodSeconds = math.MaxInt64 / nsPerSecond

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
// maxBurst is -1 (nothing ever passes) or more, count 1 to period × 10^9, period 1 to maxPeriodSeconds, and
// (maxBurst + 1) × period / count at most 292 years. Else the error is ErrZeroRate or a *RangeError.
//
// The emission interval is period / count in float64, truncated to whole nanoseconds, as in redis-cell
// (src/cell/mod.rs, Rate::per_period). A rate that does not divide its period admits each call up to 1 ns early:
// 600,000,001 a second run at 10^9. With periods over 2^53 ns, 104 days, float64 adds an error of up to 512 ns.
func NewBucket(maxBurst, count, period int64) (Bucket, error) {
	if count == 0 || period == 0 {
		return Bucket{}, ErrZeroRate
	}
	if period > maxPeriodSeconds || period < -maxPeriodSeconds {
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
// included. Both serve an engine, which decides elsewhere and must decide the same.
func (b Bucket) IntervalNS() int64  { return max(b.intervalNS, 1) }
func (b Bucket) ToleranceNS() int64 { return b.toleranceNS }

// Throttle decides on a call of the given quantity at nowNS, Unix nanoseconds and not negative, for a key whose stored
// TAT is tat: 0, or any instant that has passed, for a key that is new. It returns the TAT to store from now on. That
// is tat itself when the call is limited or its quantity is 0 (a peek), so that either changes nothing; it is no later
// than nowNS when nothing is left to remember.
//
// A negative quantity gives back what an earlier call took, up to a full bucket. The error is a *RangeError for a
// quantity whose cost does not fit int64 nanoseconds; then tat is returned as it came.
//
// Everything is measured from now: with a TAT of up to 2^64 and costs of up to 2^63 ns, sums of instants would wrap, while none of the
// differences below can.
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

// Share is the bucket for one of n instances that share the rate and cannot ask each other: the capacity is n times smaller, rounded down,
// and the interval n times longer. The capacity stays 1 at least, unless it was 0. So n shares together let through no more than the whole
// if its capacity is n or more. Otherwise each lets through one call in n intervals. For n below 2, Share returns the whole.
func (b Bucket) Share(n int64) Bucket {
	if n < 2 || b.capacity == 0 {
		return b
	}
	interval := int64(math.MaxInt64)
	if b.intervalNS <= interval/n {
		interval = b.intervalNS * n
	}
	capacity := max(b.capacity/n, 1) // where it is more than 1, capacity × interval is no more than it was
	return Bucket{capacity: capacity, intervalNS: interval, toleranceNS: capacity * interval}
}

// gcra is Throttle for a literal, with an interval of period/count, rounded up to whole nanoseconds, and a capacity of
// burst. State.A is the TAT. Any span of time lets through burst + rate × span at most.
type gcra struct{ plain }

func (*gcra) prepare(s Shape, p Params) (capacity int64, b Bucket, ok bool) {
	interval := p.intervalNS(s)
	high, tolerance := bits.Mul64(uint64(interval), uint64(p.Burst))
	return p.Burst, Bucket{capacity: p.Burst, intervalNS: interval, toleranceNS: int64(tolerance)}, high == 0 && int64(tolerance) >= 0
}

// share lowers the burst further where a count that is rounded down makes the interval up to twice as long.
func (*gcra) share(s Shape, p Params, n int64) Params {
	p.Burst = max(min(p.Burst/n, math.MaxInt64/p.intervalNS(s)), 1)
	return p
}

func (*gcra) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now, interval, tolerance := uint64(nowNS), uint64(l.bucket.intervalNS), uint64(l.bucket.toleranceNS)
	debt := debtOf(st.A, now)
	var o outcome
	switch {
	case cost == 0:
	case mode == Force:
		debt = owe(debt, interval, uint64(cost))
		st.A = now + debt
	case cost > l.Burst: // its cost in ns may not fit
		o.retryNS = Never
	case debt > tolerance-interval*uint64(cost):
		o.retryNS = debt - (tolerance - interval*uint64(cost))
	case mode == Take:
		debt += interval * uint64(cost)
		st.A = now + debt
	}
	o.resetNS = debt
	o.remaining = l.bucket.remaining(debt, interval)
	return o
}

func (*gcra) holds(l *Limit, st *State, nowNS, cost int64) bool {
	debt, interval := debtOf(st.A, uint64(nowNS)), uint64(l.bucket.intervalNS)
	return debt <= math.MaxInt64 && uint64(cost) <= (math.MaxInt64-debt)/interval
}

func (*gcra) book(l *Limit, st *State, now, cost uint64) (at uint64) {
	increment, tolerance := uint64(l.bucket.intervalNS)*cost, uint64(l.bucket.toleranceNS)
	debt := debtOf(st.A, now)
	if cost > uint64(l.Burst) || debt > math.MaxInt64 || debt+increment > math.MaxInt64 {
		return Never
	}
	st.A = now + debt + increment
	return now + debt - min(debt, tolerance-increment)
}

// owe adds to a debt, in ns, what was taken by force. The sum stops at 292 years: no burst takes longer to flow back. A debt that was
// booked behind a block may be longer already.
func owe(debt, interval, cost uint64) uint64 {
	high, increment := bits.Mul64(interval, cost)
	if high != 0 || increment > math.MaxInt64 || debt > math.MaxInt64-increment {
		return max(debt, math.MaxInt64)
	}
	return debt + increment
}

func (*gcra) end(tat, _ uint64, _ []uint64, _ uint64) uint64 { return tat }

func (*gcra) give(l *Limit, st *State, nowNS, n int64) int64 {
	now, interval := uint64(nowNS), uint64(l.bucket.intervalNS)
	if st.A <= now {
		return 0
	}
	debt := st.A - now
	if uint64(n) <= debt/interval {
		st.A -= uint64(n) * interval
		return n
	}
	st.A = now
	return int64(mulDivUp(debt, 1, interval))
}

// whole: a bucket knows no windows. Who takes ahead pays for the latest moment at which the call may pass.
func (*gcra) whole(*Limit, *State, uint64) uint64 { return Never }

// takenNS is when the call will have flowed back.
func (*gcra) takenNS(_ *Limit, st *State, _ int64) uint64 { return min(st.A, math.MaxInt64) }

func (*gcra) passedNS(l *Limit, takenNS uint64) uint64 {
	return takenNS - min(takenNS, uint64(l.bucket.toleranceNS))
}

func (*gcra) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	full := min(st.A, uint64(nowNS)) // a TAT that is sooner means the same
	for i := range from {
		if taken, end := from[i].TakenNS, from[i].ExpiryNS; taken > end {
			cost := owe(0, uint64(l.bucket.intervalNS), uint64(from[i].Cost))
			st.A -= min(taken-end, st.A-full, cost)
		}
	}
}

// carry keeps what is used as a number: the debt in intervals.
func (*gcra) carry(l *Limit, st *State, old *Limit, nowNS int64) {
	if now := uint64(nowNS); st.A > now {
		st.A = now + scale(st.A-now, uint64(l.bucket.intervalNS), uint64(old.bucket.intervalNS))
	}
}

func (*gcra) appendText(b []byte, _ Shape, st State) []byte { return appendField(b, "tat", st.A) }

func (*gcra) read(r *stateReader, _ *Limit) State { return State{A: r.number("tat", math.MaxUint64)} }
