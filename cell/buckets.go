package cell

import (
	"math"
	"slices"
)

// Slide with buckets=n cuts time into sub-windows of period/n, and sums the current one and the n-1 before it (Sentinel's
// LeapArray). Sub-windows are numbered from 1970 on. State.A is the number of the newest that has a call, State.B the sum.
// State.Ring has the counters: number i is at i mod n. A span of one period touches n+1 sub-windows, so up to twice the count
// may pass in it.
//
// A counter's age is how many sub-windows it is older than State.A: 0..n-1.
func (l *Limit) buckets(st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	newest := max(l.bucketAt(now), st.A)
	sum := l.sum(st, newest)
	passes := sum+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		l.roll(st, newest)
		taken := min(uint64(cost), mostUsed-sum)
		*l.counter(st, 0) += taken
		st.B += taken
		sum = st.B
	}
	o := l.used(sum, l.endOfBuckets(st), now)
	if mode != Force && cost > 0 && !passes {
		o.retryNS = Never
		if cost <= l.Count {
			o.retryNS = l.bucketsGone(st, newest, sum+uint64(cost)-uint64(l.Count)) - now
		}
	}
	return o
}

// bucketAt is the number of the sub-window that an instant is in.
func (l *Limit) bucketAt(ns uint64) uint64 {
	return mulDiv(ns, uint64(l.Buckets), uint64(l.PeriodNS))
}

func (l *Limit) counter(st *State, age uint64) *uint64 {
	n := uint64(l.Buckets)
	return &st.Ring[(st.A+n-age)%n]
}

// gone is when a counter stops to count, in Unix ns: at the start of the sub-window n later.
func (l *Limit) gone(st *State, age uint64) uint64 {
	return mulDivUp(st.A+uint64(l.Buckets)-age, uint64(l.PeriodNS), uint64(l.Buckets))
}

// live is how many counters still count when newest is the newest sub-window: those of ages below it.
func (l *Limit) live(st *State, newest uint64) uint64 {
	n := uint64(l.Buckets)
	return n - min(n, newest-st.A)
}

// sum is what was taken in the n sub-windows up to newest.
func (l *Limit) sum(st *State, newest uint64) uint64 {
	live, sum := l.live(st, newest), st.B
	if sum == 0 || live == 0 {
		return 0
	}
	for age := live; age < uint64(l.Buckets); age++ {
		sum -= *l.counter(st, age)
	}
	return sum
}

// roll forgets the counters that no longer count.
func (l *Limit) roll(st *State, newest uint64) {
	for age := l.live(st, newest); age < uint64(l.Buckets); age++ {
		counter := l.counter(st, age)
		st.B -= *counter
		*counter = 0
	}
	st.A = newest
}

// bucketsGone is when need has left the sum, in Unix ns. need is at most the sum.
func (l *Limit) bucketsGone(st *State, newest, need uint64) uint64 {
	age := l.live(st, newest) - 1
	for ; age > 0; age-- {
		has := *l.counter(st, age)
		if has >= need {
			break
		}
		need -= has
	}
	return l.gone(st, age)
}

func (l *Limit) giveBuckets(st *State, nowNS, n int64) int64 {
	newest := max(l.bucketAt(uint64(nowNS)), st.A)
	if l.sum(st, newest) == 0 {
		return 0
	}
	l.roll(st, newest)
	left := uint64(n)
	for age := uint64(0); age < uint64(l.Buckets) && left > 0; age++ {
		counter := l.counter(st, age)
		part := min(*counter, left)
		*counter -= part
		st.B -= part
		left -= part
	}
	return n - int64(left)
}

func (l *Limit) endOfBuckets(st *State) uint64 {
	if st.B == 0 {
		return 0
	}
	age := uint64(0)
	for *l.counter(st, age) == 0 {
		age++
	}
	return l.gone(st, age)
}

// carryBuckets scales the running sum from the newest counter to the oldest. So rounding up adds less than 1 in all, and what
// is left is still rounded up after old counters have gone.
func (l *Limit) carryBuckets(st *State, old *Limit) {
	st.Ring = append(make([]uint64, 0, len(st.Ring)), st.Ring...)
	var sum, scaled uint64
	for age := uint64(0); age < uint64(len(st.Ring)); age++ {
		counter := l.counter(st, age)
		sum += *counter
		next := min(scale(sum, uint64(l.Count), uint64(old.Count)), mostUsed)
		*counter, scaled = next-scaled, next
	}
	st.B = scaled
}

// bucketsIn is by how many sub-windows a shift by ns moves the counters. It rounds down, so that nobody waits longer.
func (l *Limit) bucketsIn(ns int64) int64 {
	if ns < 0 {
		return -int64(mulDivUp(uint64(-ns), uint64(l.Buckets), uint64(l.PeriodNS)))
	}
	return int64(l.bucketAt(uint64(ns)))
}

// turnBuckets moves the counters by so many sub-windows, negative ones into the past.
func (l *Limit) turnBuckets(st *State, by int64) {
	n, was := uint64(l.Buckets), st.A
	if by < 0 {
		st.A -= min(uint64(-by), st.A)
	} else {
		st.A += min(uint64(by), max(st.A, l.bucketAt(math.MaxInt64))-st.A)
	}
	if len(st.Ring) > 0 { // the counter at was mod n is now at st.A mod n
		turn := (was%n + n - st.A%n) % n
		slices.Reverse(st.Ring[:turn])
		slices.Reverse(st.Ring[turn:])
		slices.Reverse(st.Ring)
	}
}
