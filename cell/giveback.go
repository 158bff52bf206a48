package cell

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// TakenNS is what the lease of a call that has just been granted remembers of it: when it was, or, with gcra, when it will have flowed
// back.
func (l *Limit) TakenNS(st *State, nowNS int64) uint64 {
	if l.Algo == GCRA {
		return min(st.A, math.MaxInt64)
	}
	return uint64(nowNS)
}

// PassedNS is when a call passed, or will, of which a lease remembers TakenNS, as far as that is known: 0 if it is not.
func (l *Limit) PassedNS(takenNS uint64) uint64 {
	switch capacity := uint64(l.Capacity()) * uint64(l.gcra.intervalNS); {
	case l.Algo != GCRA:
		return takenNS
	case takenNS > capacity:
		return takenNS - capacity
	}
	return 0
}

// GiveBack gives back the costs of leases that were taken from a limit. What has come back by itself does not come back again: to a
// bucket flows what has not flowed back, and to a window, a slide or a log only while the window, the sub-window or the call is there
// that the lease was taken in. It sorts the leases by TakenNS, in the time that the limit is decided in. To leases it gives nothing.
//
// companion is the shape of the leases' state. Where the policy was a gcra's when they were taken, and is another's, nothing is given: it is
// not known when they were taken.
func (l *Limit) GiveBack(st *State, nowNS int64, companion *Shape, from []Lease) {
	if companion.Algo == GCRA && l.Algo != GCRA {
		return
	}
	now, period := uint64(nowNS), uint64(l.PeriodNS)
	switch {
	case l.HoldsLeases():
	case l.Algo == GCRA:
		for i := range from {
			l.giveBackBucket(st, now, &from[i])
		}
	case l.Algo == Log:
		slices.SortFunc(from, func(a, b Lease) int { return cmp.Compare(a.TakenNS, b.TakenNS) })
		l.giveBackLog(st, now, from)
	case l.Buckets > 0:
		newest := max(l.bucketAt(now), st.A)
		if l.sum(st, newest) == 0 {
			return
		}
		l.roll(st, newest)
		for i := range from {
			if number := l.bucketAt(from[i].TakenNS); number <= newest && newest-number < uint64(l.Buckets) {
				counter := l.counter(st, newest-number)
				part := min(*counter, uint64(from[i].Cost))
				*counter -= part
				st.B -= part
			}
		}
	case l.Algo == Slide:
		w := slideAt(st, now, period)
		cur, prev := w.cur, w.prev
		for i := range from {
			switch taken := from[i].TakenNS; {
			case taken >= w.start:
				w.cur -= min(w.cur, uint64(from[i].Cost))
			case taken+period >= w.start:
				w.prev -= min(w.prev, uint64(from[i].Cost))
			}
		}
		if w.cur != cur || w.prev != prev {
			st.A, st.B = w.start, w.cur<<32|w.prev
		}
	default:
		sum := int64(0)
		for i := range from {
			if l.Algo != Window || l.inWindow(st, from[i].TakenNS, now) {
				sum = min(sum+from[i].Cost, math.MaxInt64/2)
			}
		}
		if sum > 0 {
			l.Give(st, nowNS, sum)
		}
	}
}

func (l *Limit) giveBackBucket(st *State, now uint64, from *Lease) {
	if from.TakenNS <= now || st.A <= now {
		return
	}
	back := min(from.TakenNS-now, st.A-now)
	if high, cost := bits.Mul64(uint64(from.Cost), uint64(l.gcra.intervalNS)); high == 0 {
		back = min(back, cost)
	}
	st.A -= back
}

// inWindow reports whether the window that an instant is in is not over. It may be ahead.
func (l *Limit) inWindow(st *State, ns, now uint64) bool {
	switch period := uint64(l.PeriodNS); {
	case l.Aligned():
		return l.nextEdgeNS(int64(ns)) > now
	case ns < st.A:
		return st.A-(st.A-1-ns)/period*period > now
	}
	return ns == st.A
}

// giveBackLog writes the log anew, without what is given back: leases are sorted by when they were taken. A call of before may have
// become part of the one after it.
func (l *Limit) giveBackLog(st *State, now uint64, from []Lease) {
	c := calls{st}
	c.drop(c.firstAfter(now, uint64(l.PeriodNS)))
	kept, was, is := 0, st.B, st.B
	for i := range c.n() {
		at, sum := c.time(i), c.sum(i)
		cost := sum - was
		was = sum
		for len(from) > 0 && from[0].TakenNS <= at {
			if from[0].TakenNS+uint64(l.PeriodNS) > now {
				cost -= min(cost, uint64(from[0].Cost))
			}
			from = from[1:]
		}
		if cost > 0 {
			is += cost
			place := c.at(kept)
			st.Ring[place], st.Ring[place+1] = at, is
			kept++
		}
	}
	if kept == 0 {
		c.set(0, 0)
	} else {
		c.set(c.place(), kept)
	}
}
