package cell

import (
	"cmp"
	"math"
	"slices"

	"celld/cell/lease"
)

// warmup is a rate that begins low after a rest, for a cache or a pool that needs to warm up: Guava's SmoothRateLimiter.SmoothWarmingUp.
// Calls are spread evenly. Each call is paid for by the wait of the next one, so a call of any cost passes as soon as those before it are
// paid for. In the words of Guava, where interval is ns a call and permits are stored while nobody calls:
//
//	a permit costs              the most are stored when it is cold
//	  cold × interval ─┐      ╱ │
//	                   │    ╱   │          threshold = warmup / interval / 2
//	         interval ─┼───     │          max = threshold + 2 × warmup / (interval + cold × interval)
//	                   └──┴─────┴─▶ stored
//	                 0 threshold max
//
// While nobody calls, the stored permits rise from 0 to max within warmup. So a time stands for them: State.B is how long it takes in ns to
// be cold again, 0..warmup, from State.A on. State.A is when the next call passes. A call of n then costs
//
//	n × interval + q × D × (2X - D) / warmup, q = (cold-1) × (5+cold)² / (16 × (1+cold))
//
// where X is how much is stored above the threshold, and D is the part of it that the call takes, both as time.
type warmup struct{ plain }

func (*warmup) prepare(s Shape, p Params) (capacity int64, b Bucket, ok bool) {
	interval := p.intervalNS(s)
	return p.Count, Bucket{capacity: 1, intervalNS: interval, toleranceNS: interval}, true
}

func (*warmup) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	free, warmth := st.warmthAt(now)
	var o outcome
	switch {
	case cost == 0:
	case mode != Force && l.neverPaid(uint64(cost)):
		o.retryNS = Never
	case mode != Force && free > now:
		o.retryNS = free - now
	case mode != Peek:
		used := min(l.warmthOf(uint64(cost)), uint64(l.warmupNS())-warmth)
		free += min(l.costOfWarmth(warmth, uint64(cost)), mostWarmupDebt-min(free-now, mostWarmupDebt))
		warmth += used
		st.A, st.B = free, warmth
	}
	if free <= now {
		o.remaining = 1
	}
	o.resetNS = free + warmth - now
	return o
}

// neverPaid reports a cost that takes more than 292 years to pay for when the limit is cold. Such a call never passes. One permit takes
// 100 years at most.
func (l *Limit) neverPaid(cost uint64) bool {
	return cost > 1 && l.costOfWarmth(0, cost) > mostWarmupDebt
}

// mostWarmupDebt is the longest that the next call waits: 292 years, as for a bucket. The key is cold again a warmup later, which is still
// an instant.
const mostWarmupDebt = math.MaxInt64 - maxWarmupNS

func (l *Limit) warmupNS() int64 { return l.Burst * nsPerMS }

// warmthAt is when the next call passes, and how warm the limit is then, if no call comes before now.
func (st *State) warmthAt(now uint64) (free, warmth uint64) {
	if st.A >= now {
		return st.A, st.B
	}
	return now, st.B - min(st.B, now-st.A)
}

// warmthOf is by how much n calls warm the limit, in ns: the time in which as many permits are stored.
func (l *Limit) warmthOf(n uint64) uint64 {
	cold := uint64(l.Cold)
	each := mulDiv(uint64(l.bucket.intervalNS), 2*(100+cold), 500+cold)
	if most := uint64(l.warmupNS()); n > most/max(each, 1) {
		return most
	}
	return n * each
}

// costOfWarmth is what a call of n costs at this warmth, in ns and at most MaxInt64.
func (l *Limit) costOfWarmth(warmth, n uint64) uint64 {
	warmup, cold := uint64(l.warmupNS()), uint64(l.Cold)
	cost := owe(0, uint64(l.bucket.intervalNS), n)
	above := mulDiv(warmup, 400, 500+cold) // what is stored above the threshold when the limit is cold
	if above <= warmth {
		return cost
	}
	above -= warmth
	taken := min(above, l.warmthOf(n))
	steep := mulDiv(2*above-taken, (cold-100)*(500+cold)*(500+cold), 16*100*100*(100+cold))
	return min(cost+mulDivUp(taken, steep, warmup), math.MaxInt64)
}

func (*warmup) holds(l *Limit, st *State, nowNS, cost int64) bool {
	free, warmth := st.warmthAt(uint64(nowNS))
	wait := free - uint64(nowNS)
	return wait <= mostWarmupDebt && l.costOfWarmth(warmth, uint64(cost)) <= mostWarmupDebt-wait
}

// book is Guava's reserve: the call passes when those before it are paid for.
func (w *warmup) book(l *Limit, st *State, now, cost uint64) (at uint64) {
	was := st.A
	if was > latestBooked || l.neverPaid(cost) {
		return Never
	}
	w.decide(l, st, int64(now), int64(cost), Force)
	return max(was, now)
}

func (*warmup) end(free, warmth uint64, _ []uint64, _ uint64) uint64 { return free + warmth }

// give undoes the latest calls that are not paid for. A limit that is as warm as it gets stays so: nobody knows how many stored permits the
// calls took.
func (*warmup) give(l *Limit, st *State, nowNS, n int64) int64 {
	now := uint64(nowNS)
	if st.A <= now {
		return 0
	}
	undo := func(n uint64) (warmth, ns uint64) {
		warmth = st.B
		if warmth < uint64(l.warmupNS()) {
			warmth -= min(warmth, l.warmthOf(n))
		}
		return warmth, l.costOfWarmth(warmth, n)
	}
	few, many := uint64(0), uint64(n)+1 // few are not paid for, and many are
	if _, ns := undo(uint64(n)); ns <= st.A-now {
		few = uint64(n) // as nearly always, without 50 steps
	}
	for many-few > 1 {
		half := few + (many-few)/2
		if _, ns := undo(half); ns <= st.A-now {
			few = half
		} else {
			many = half
		}
	}
	warmth, ns := undo(few)
	if few < uint64(n) && ns < st.A-now { // one is paid for in part
		few++
		warmth, _ = undo(few)
		ns = st.A - now
	}
	st.A, st.B = st.A-ns, warmth
	return int64(few)
}

// giveBack undoes one lease after another, as the unpaid calls are others at each end.
func (w *warmup) giveBack(l *Limit, st *State, _ int64, from []lease.Lease) {
	slices.SortFunc(from, func(a, b lease.Lease) int {
		return cmp.Or(cmp.Compare(a.ExpiryNS, b.ExpiryNS), cmp.Compare(a.ID, b.ID))
	})
	for i := range from {
		w.give(l, st, int64(from[i].ExpiryNS), from[i].Cost)
	}
}

// carry keeps the share of the stored permits, as Guava's setRate does, and the share of the wait.
func (*warmup) carry(l *Limit, st *State, old *Limit, nowNS int64) {
	now := uint64(nowNS)
	free, warmth := st.warmthAt(now)
	wait := scale(free-now, uint64(l.bucket.intervalNS), uint64(old.bucket.intervalNS))
	st.A = now + min(wait, mostWarmupDebt)
	st.B = mulDiv(warmth, uint64(l.warmupNS()), uint64(old.warmupNS()))
}

func (*warmup) appendText(b []byte, _ Shape, st State) []byte {
	return appendField(appendField(b, "free", st.A), "warmth", st.B)
}

func (*warmup) read(r *stateReader, l *Limit) (st State) {
	st.A = r.number("free", math.MaxUint64-maxWarmupNS)
	st.B = r.number("warmth", uint64(l.warmupNS()))
	return st
}
