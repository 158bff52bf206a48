package cell

import (
	"math"
	"math/bits"
)

// State is what is remembered of a limit under a key: two words that mean what the algorithm's file says, and for those
// that keep more a ring of them. The zero value is that of a key never seen.
type State struct {
	A, B      uint64
	BlockedNS uint64   // Unix ns until which all is denied (block=); 0 or past: not
	Ring      []uint64 // log, slide with buckets, and leases; Fit makes it
}

// Mode is what a call does.
type Mode uint8

const (
	Take  Mode = iota // what passes is taken; what does not changes nothing but the block
	Peek              // nothing is changed
	Force             // it is taken whether it passes or not
)

// MaxCost is the most that one call may take.
const MaxCost = 1<<31 - 1

// mostUsed is the highest value of a counter that Force raises, so that no sum wraps: 285 years of 10^6 a second.
const mostUsed = 1 << 53

// Decide decides on a call of a cost from 0 to MaxCost at nowNS, in Unix ns. A Take or Force that is granted changes the state;
// call Fit first. The Decision says what is left after the call. Remaining is 0 while a key is blocked.
//
// The state is one that the same Shape and Params have left: see Carry.
func (l *Limit) Decide(st *State, nowNS, cost int64, mode Mode) Decision {
	blocked := uint64(0)
	if st.BlockedNS > uint64(nowNS) {
		blocked = st.BlockedNS - uint64(nowNS)
		if mode == Take {
			mode = Peek
		}
	}
	var o outcome
	switch {
	case l.Algo == GCRA:
		o = l.bucket(st, nowNS, cost, mode)
	case l.Algo == Window:
		o = l.window(st, nowNS, cost, mode)
	case l.Algo == Log:
		o = l.log(st, nowNS, cost, mode)
	case l.Algo == Warmup:
		o = l.warmup(st, nowNS, cost, mode)
	case l.Algo == Conc:
		o = l.conc(st, nowNS, cost, mode)
	case l.Buckets > 0:
		o = l.buckets(st, nowNS, cost, mode)
	default:
		o = l.slide(st, nowNS, cost, mode)
	}
	if l.BlockNS > 0 && o.retryNS > 0 && mode == Take {
		blocked = uint64(l.BlockNS)
		st.BlockedNS = uint64(nowNS) + blocked
	}
	if blocked > 0 {
		o.remaining, o.resetNS = 0, max(o.resetNS, blocked)
		if cost > 0 && mode != Force {
			o.retryNS = max(o.retryNS, blocked)
		}
	}
	limited := o.retryNS > 0
	if !limited {
		o.retryNS = Never
	}
	return Decision{Limited: limited, Limit: l.Capacity(), Remaining: o.remaining, RetryAfterNS: o.retryNS, ResetAfterNS: o.resetNS}
}

// outcome is what an algorithm makes of a call. It is small enough to stay in registers, as a Decision is not.
type outcome struct {
	remaining int64
	retryNS   uint64 // 0: not limited
	resetNS   uint64
}

// Give gives back up to n of what was taken, the latest first, and returns how much that was. Of algo=conc it ends MostGiven leases at
// most: call it again for the rest.
func (l *Limit) Give(st *State, nowNS, n int64) int64 {
	switch l.Algo {
	case Window:
		return l.giveWindow(st, nowNS, n)
	case Slide:
		if l.Buckets > 0 {
			return l.giveBuckets(st, nowNS, n)
		}
		return l.giveSlide(st, nowNS, n)
	case Log:
		return l.giveLog(st, nowNS, n)
	case Warmup:
		return l.giveWarmup(st, nowNS, n)
	case Conc:
		return l.giveConc(st, nowNS, n)
	}
	return l.giveBucket(st, nowNS, n)
}

// EndNS is when nothing of a state is left to remember, in Unix ns. 0 or an instant that has passed: nothing is left now.
func (l *Limit) EndNS(st *State) uint64 {
	var end uint64
	if l.Leases {
		return leases{st}.lastEnd()
	}
	switch l.Algo {
	case GCRA:
		end = st.A
	case Window:
		end = l.endOfWindow(st)
	case Slide:
		if l.Buckets > 0 {
			end = l.endOfBuckets(st)
		} else {
			end = l.endOfSlide(st)
		}
	case Log:
		end = l.endOfLog(st)
	case Warmup:
		end = st.A + st.B
	case Conc:
		end = leases{st}.lastEnd()
	}
	return max(end, st.BlockedNS)
}

// Fit makes room in a state for one more call to be taken, and returns by how many words its ring has grown.
func (l *Limit) Fit(st *State, nowNS int64) (words int) {
	switch {
	case l.Algo == Log:
		return l.fitLog(st, nowNS)
	case l.Algo == Conc:
		return l.fitConc(st, nowNS)
	case l.Buckets > 0 && len(st.Ring) == 0:
		st.Ring = make([]uint64, l.Buckets)
		return len(st.Ring)
	}
	return 0
}

// Fits reports whether one more call can be taken without Fit.
func (l *Limit) Fits(st *State) bool {
	switch {
	case l.Algo == Log:
		c := calls{st}
		return c.n() < c.capacity() || int64(c.n()) >= l.Count && c.n() > 0
	case l.Algo == Conc:
		return leases{st}.fits(1)
	case l.Buckets > 0:
		return len(st.Ring) > 0
	}
	return true
}

// Carry turns a state that old has left into one for l. If they differ only in Params what was used is scaled with them, so
// that a key that was used up stays so and waits no longer than one that is used up under l; only a log, which has the calls
// themselves, is kept as it is. Between other limits it is the used share that is taken anew. Used is rounded up: a
// change gains nothing. A ring that changes is a new one.
//
// wasNS is now in old's time and nowNS is now in l's. They differ when one limit is Aligned. A block stays as long as it was.
//
// Keep the outcome, even when the call is denied. Carried anew by each call, a debt would tell each of them the same retry after, and
// none would ever pass.
func (l *Limit) Carry(st *State, old *Limit, wasNS, nowNS int64) {
	switch {
	case l.Shape == old.Shape && l.Params == old.Params:
	case l.Algo == Conc && old.Algo == Conc: // leases keep their ends
	case l.Algo == Warmup && old.Algo == Warmup:
		l.carryWarmup(st, old, nowNS)
	case l.Shape != old.Shape:
		blocked := st.BlockedNS
		st.BlockedNS = 0
		d := old.Decide(st, wasNS, 0, Peek)
		if old.Algo == Warmup {
			d.Limit = 1
		}
		capacity := l.Capacity()
		if l.Algo == Warmup {
			capacity = 1
		}
		used := scale(uint64(d.Limit-d.Remaining), uint64(capacity), uint64(d.Limit))
		*st = State{}
		if used > 0 {
			l.Fit(st, nowNS)
			at := nowNS
			if l.Algo == Conc {
				at-- // so that what was used ends before a lease that is taken now: those of one end become one
			}
			l.Decide(st, at, int64(used), Force)
		}
		st.BlockedNS = ShiftInstant(blocked, nowNS-wasNS)
	case l.Algo == GCRA:
		l.carryBucket(st, old, nowNS)
	case l.Algo == Window:
		l.carryWindow(st, old)
	case l.Buckets > 0:
		l.carryBuckets(st, old)
	case l.Algo == Slide:
		l.carrySlide(st, old)
	}
}

// Shift adds ns, negative or not, to every instant in a state. Sub-windows move by whole ones, rounded down.
func (l *Limit) Shift(st *State, ns int64) {
	st.BlockedNS = ShiftInstant(st.BlockedNS, ns)
	switch {
	case l.HoldsLeases():
		leases{st}.shift(ns)
	case l.Buckets > 0:
		l.turnBuckets(st, l.bucketsIn(ns))
	case l.Algo == Log:
		l.shiftLog(st, ns)
	default:
		st.A = ShiftInstant(st.A, ns)
	}
}

// ShiftBack undoes a Shift by ns: sub-windows return to where they were.
func (l *Limit) ShiftBack(st *State, ns int64) {
	if l.Buckets > 0 && !l.Leases {
		st.BlockedNS = ShiftInstant(st.BlockedNS, -ns)
		l.turnBuckets(st, -l.bucketsIn(ns))
		return
	}
	l.Shift(st, -ns)
}

// ShiftInstant adds ns to an instant, which becomes neither negative nor, by that, later than MaxInt64. 0 is no instant and
// stays 0.
func ShiftInstant(instant uint64, ns int64) uint64 {
	switch {
	case instant == 0:
		return 0
	case ns < 0:
		return instant - min(instant, uint64(-ns))
	}
	return instant + min(uint64(ns), max(instant, math.MaxInt64)-instant)
}

// used is the outcome where n count against the count until endNS. It does not say when the call will pass.
func (l *Limit) used(n, endNS, now uint64) outcome {
	return outcome{remaining: max(0, l.Count-int64(n)), resetNS: debtOf(endNS, now)}
}

// scale is n×to/from rounded up, at most MaxInt64. from is more than 0.
func scale(n, to, from uint64) uint64 {
	if high, _ := bits.Mul64(n, to); high >= from {
		return math.MaxInt64
	}
	return min(mulDivUp(n, to, from), math.MaxInt64)
}

// mulDiv is a×b/by rounded down. It must fit 64 bits; the product need not.
func mulDiv(a, b, by uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, by)
	return quotient
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, by uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, rest := bits.Div64(high, low, by)
	if rest > 0 {
		quotient++
	}
	return quotient
}
