package cell

import (
	"math"

	"celld/cell/lease"
)

// slide without buckets counts in windows that begin at multiples of its period, and assumes that the calls of the window before were
// spread evenly: with cur in this window of length W, which began elapsed ago, and prev in the one before, a
// call passes iff
//
//	cur×W + prev×(W-elapsed) + cost×W ≤ count×W
//
// State.A is where the window begins, State.B is both numbers. Calls that were not spread evenly let through up to nearly
// twice the count in a span of W.
type slide struct{ pairs }

func (a *slide) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	period := uint64(l.PeriodNS)
	w := slideAt(st, now, period)
	weighted := w.weighted(period)
	taken, waits := l.counts(w.cur+weighted, cost, mode)
	if taken {
		w.cur = min(w.cur+uint64(cost), mostUsed)
		st.A = w.start
		st.setPair(w.cur, w.prev)
	}
	o := l.used(w.cur+weighted, a.end(st.A, st.B, st.Ring, period), now)
	if waits {
		o.retryNS = w.start + w.roomFor(uint64(l.Count-cost), period) - now
	}
	return o
}

func (*slide) fit(l *Limit, st *State, nowNS, cost int64) (words int) {
	w := slideAt(st, uint64(nowNS), uint64(l.PeriodNS))
	if w.prev == 0 || w.prev <= mostBefore && w.cur+uint64(cost) <= math.MaxUint32 {
		return 0
	}
	return st.fitPair()
}

func (*slide) holds(l *Limit, st *State, nowNS, cost int64) bool {
	w := slideAt(st, uint64(nowNS), uint64(l.PeriodNS))
	return w.cur+w.weighted(uint64(l.PeriodNS))+uint64(cost) <= MaxCost
}

// windows are the two of a slide, as they are at an instant.
type windows struct{ start, elapsed, cur, prev uint64 }

func slideAt(st *State, now, period uint64) windows {
	w := windows{start: st.A}
	w.cur, w.prev = st.pair()
	switch {
	case now < w.start: // another reader of the clock was ahead
		return w
	case now-w.start >= 2*period:
		w.start, w.cur, w.prev = now-now%period, 0, 0
	case now-w.start >= period:
		w.start, w.cur, w.prev = w.start+period, 0, w.cur
	}
	w.elapsed = now - w.start
	return w
}

// weighted is what the window before still counts for, rounded up.
func (w windows) weighted(period uint64) uint64 {
	if w.prev == 0 {
		return 0
	}
	return mulDivUp(w.prev, period-w.elapsed, period)
}

// roomFor is how long after the start of the window no more than most is used, if more is now.
func (w windows) roomFor(most, period uint64) uint64 {
	if w.cur <= most {
		return period - mulDiv(most-w.cur, period, w.prev) // prev×(W-elapsed) ≤ (most-cur)×W
	}
	return 2*period - mulDiv(most, period, w.cur) // in the next window, where cur is prev
}

func (*slide) give(l *Limit, st *State, nowNS, n int64) int64 {
	w := slideAt(st, uint64(nowNS), uint64(l.PeriodNS))
	fromCur := min(uint64(n), w.cur)
	fromPrev := min(uint64(n)-fromCur, w.prev)
	w.take(st, fromCur, fromPrev)
	return int64(fromCur + fromPrev)
}

// take removes what is given back from a state.
func (w windows) take(st *State, fromCur, fromPrev uint64) {
	if fromCur+fromPrev > 0 {
		st.A = w.start
		st.setPair(w.cur-fromCur, w.prev-fromPrev)
	}
}

// takenNS is not before the window begins.
func (*slide) takenNS(_ *Limit, st *State, nowNS int64) uint64 { return max(uint64(nowNS), st.A) }

// giveBack gives to the two windows that still count.
func (*slide) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	period := uint64(l.PeriodNS)
	w := slideAt(st, uint64(nowNS), period)
	fromCur, fromPrev := uint64(0), uint64(0)
	for i := range from {
		switch taken, cost := from[i].TakenNS, uint64(from[i].Cost); {
		case taken >= w.start:
			fromCur = min(fromCur+cost, w.cur)
		case taken+period >= w.start:
			fromPrev = min(fromPrev+cost, w.prev)
		}
	}
	w.take(st, fromCur, fromPrev)
}

// whole is the end of the window: in the next, what was counted weighs less.
func (*slide) whole(l *Limit, st *State, now uint64) uint64 {
	return slideAt(st, now, uint64(l.PeriodNS)).start + uint64(l.PeriodNS)
}

func (*slide) end(start, b uint64, ring []uint64, period uint64) uint64 {
	st := State{B: b, Ring: ring}
	switch cur, prev := st.pair(); {
	case cur > 0:
		return start + 2*period
	case prev > 0:
		return start + period
	}
	return 0
}

func (*slide) appendText(b []byte, _ Shape, st State) []byte {
	cur, prev := st.pair()
	return appendField(appendField(appendField(b, "start", st.A), "used", cur), "before", prev)
}

func (*slide) read(r *stateReader, _ *Limit) (st State) {
	st.A = r.number("start", math.MaxInt64)
	cur := r.number("used", mostUsed)
	st.setPair(cur, r.number("before", mostUsed))
	return st
}
