package cell

import "math"

// Slide without buckets counts in windows that begin at multiples of its period, and takes it that the calls of the window
// before were spread evenly: with cur in this window of length W, which began elapsed ago, and prev in the one before, a
// call passes iff
//
//	cur×W + prev×(W-elapsed) + cost×W ≤ count×W
//
// State.A is where the window begins, State.B is cur<<32 | prev. Calls that were not spread evenly let through up to nearly
// twice the count in a span of W.
func (l *Limit) slide(st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	period := uint64(l.PeriodNS)
	w := slideAt(st, now, period)
	weighted := w.weighted(period)
	passes := w.cur+weighted+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		w.cur = min(w.cur+uint64(cost), math.MaxUint32)
		st.A, st.B = w.start, w.cur<<32|w.prev
	}
	o := l.used(w.cur+weighted, l.endOfSlide(st), now)
	if mode != Force && cost > 0 && !passes {
		o.retryNS = Never
		if cost <= l.Count {
			o.retryNS = w.start + w.roomFor(uint64(l.Count-cost), period) - now
		}
	}
	return o
}

// windows are the two of a slide, as they are at an instant.
type windows struct{ start, elapsed, cur, prev uint64 }

func slideAt(st *State, now, period uint64) windows {
	w := windows{start: st.A, cur: st.B >> 32, prev: st.B & math.MaxUint32}
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

// roomFor is how long after its start no more than most is used, if more is now.
func (w windows) roomFor(most, period uint64) uint64 {
	if w.cur <= most {
		return period - mulDiv(most-w.cur, period, w.prev) // prev×(W-elapsed) ≤ (most-cur)×W
	}
	return 2*period - mulDiv(most, period, w.cur) // in the next window, where cur is prev
}

func (l *Limit) giveSlide(st *State, nowNS, n int64) int64 {
	w := slideAt(st, uint64(nowNS), uint64(l.PeriodNS))
	fromCur := min(uint64(n), w.cur)
	fromPrev := min(uint64(n)-fromCur, w.prev)
	if given := fromCur + fromPrev; given > 0 {
		st.A, st.B = w.start, (w.cur-fromCur)<<32|(w.prev-fromPrev)
		return int64(given)
	}
	return 0
}

func (l *Limit) endOfSlide(st *State) uint64 {
	switch cur, prev := st.B>>32, st.B&math.MaxUint32; {
	case cur > 0:
		return st.A + 2*uint64(l.PeriodNS)
	case prev > 0:
		return st.A + uint64(l.PeriodNS)
	}
	return 0
}

func (l *Limit) carrySlide(st *State, old *Limit) {
	cur := scale(st.B>>32, uint64(l.Count), uint64(old.Count))
	prev := scale(st.B&math.MaxUint32, uint64(l.Count), uint64(old.Count))
	st.B = min(cur, math.MaxUint32)<<32 | min(prev, math.MaxUint32)
}
