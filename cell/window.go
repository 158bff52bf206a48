package cell

import (
	"math"
	"slices"
	"strings"

	"celld/cell/lease"
)

// window counts calls in windows of time: from the first call on, or aligned to the clock or the calendar. State.A is when the window
// ends, and State.B is what was used in it. Around an edge it lets through up to twice its count: all of it at the end of one window, and
// again at the start of the next.
//
// Calls that are booked ahead fill one window after another, without a gap. Then State.A is when the last of these windows ends, and
// State.B is before<<32 | used, where before is what was used in the window before it. No call passes until the last window begins, so
// the windows further back count as full. before is 0 if nothing was booked.
type window struct{ plain }

func (w *window) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	end, used := st.A, st.B
	if now >= end || used == 0 {
		end, used = 0, 0
	}
	if used > math.MaxUint32 {
		return w.decideBooked(l, st, nowNS, cost, mode)
	}
	taken, waits := l.counts(used, cost, mode)
	if taken {
		if end == 0 {
			end = l.nextEdgeNS(nowNS)
		}
		used = min(used+uint64(cost), math.MaxUint32)
		st.A, st.B = end, used
	}
	o := l.used(used, end, now)
	if waits {
		o.retryNS = o.resetNS
	}
	return o
}

// mostBefore is the most that is remembered of the window before the last, so that State.B and a cost do not wrap.
const mostBefore = math.MaxInt32

// decideBooked decides where calls are booked into the last window.
func (w *window) decideBooked(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	if begin := l.beginNS(st.A); uint64(nowNS) < begin {
		return w.decideAhead(l, st, uint64(nowNS), begin, cost, mode)
	}
	last := State{A: st.A, B: st.B & math.MaxUint32}
	used := last.B
	o := w.decide(l, &last, nowNS, cost, mode)
	if last.B != used {
		st.B = last.B
	}
	return o
}

// decideAhead decides before the last booked window begins: nothing passes. A forced call counts in the window that it is in, and is
// forgotten with it.
func (*window) decideAhead(l *Limit, st *State, now, begin uint64, cost int64, mode Mode) outcome {
	o := outcome{resetNS: st.A - now}
	used, before := st.B&math.MaxUint32, st.B>>32
	switch {
	case cost == 0:
	case mode == Force:
		if now >= l.beginNS(begin) {
			st.B = min(before+uint64(cost), mostBefore)<<32 | used
		}
	case used+uint64(cost) <= uint64(l.Count):
		o.retryNS = begin - now
	default:
		o.retryNS = o.resetNS
	}
	return o
}

// book takes a call in the first window from now on with room for it and with no later window booked.
func (*window) book(l *Limit, a, b, now, cost uint64) (nextA, nextB, at uint64) {
	end, used, before := a, b&math.MaxUint32, b>>32
	switch {
	case now >= end || used == 0:
		return l.nextEdgeNS(int64(now)), cost, now
	case used+cost <= uint64(l.Count):
		if before > 0 {
			now = max(now, l.beginNS(end))
		}
		return a, b + cost, now
	case end > latestBooked:
		return a, b, Never
	}
	return l.nextEdgeNS(int64(end)), min(used, mostBefore)<<32 | cost, end
}

// give gives back what is booked for the last window first, then for the window before it, and so on.
func (*window) give(l *Limit, st *State, nowNS, n int64) int64 {
	now, count, left := uint64(nowNS), uint64(l.Count), uint64(n)
	if now >= st.A {
		return 0
	}
	for left > 0 && st.B > 0 {
		used, before := st.B&math.MaxUint32, st.B>>32
		part := min(left, used)
		left -= part
		if part < used {
			st.B -= part
			break
		}
		end := l.beginNS(st.A)
		if before == 0 || end <= now {
			st.B = 0
			break
		}
		passes := max(now, st.BlockedNS) // not sooner
		if before == count && end > passes {
			var full uint64
			end, full = l.skipBack(end, passes, left/count)
			left -= full * count
		}
		st.A, st.B = end, before
		if l.beginNS(end) > passes { // others are before this one
			st.B |= count << 32
		}
	}
	return n - int64(left)
}

// skipBack goes from an edge back by up to most windows, and not to passes. There may be millions of them. Windows that differ in length
// are counted as if all were of PeriodNS, which is right to 500 in 292 years. The last ones are left to be gone through one by one, for the
// days that clocks skip, too.
func (l *Limit) skipBack(end, passes, most uint64) (edge, n uint64) {
	n = min(most, (end-passes-1)/uint64(l.PeriodNS))
	if !l.uneven() {
		return end - n*uint64(l.PeriodNS), n
	}
	n -= min(n, 500)
	if n == 0 {
		return end, 0
	}
	wall := l.wallEdge(l.Zone.wall(int64(end/nsPerSecond)), -int(n))
	return uint64(l.Zone.first(wall)) * nsPerSecond, n
}

func (*window) carry(l *Limit, st *State, old *Limit, _ int64) {
	used := scale(st.B&math.MaxUint32, uint64(l.Count), uint64(old.Count))
	before := scale(st.B>>32, uint64(l.Count), uint64(old.Count))
	st.B = min(before, mostBefore)<<32 | min(used, math.MaxUint32)
}

func (*window) end(end, used uint64, _ []uint64, _ uint64) uint64 {
	if used == 0 {
		return 0
	}
	return end
}

// uneven reports that windows differ in length: months and years do, and all where clocks change.
func (s *Shape) uneven() bool { return s.Unit >= unitMonth || s.Zone.named() }

// wallEdge is what clocks should show when a window begins: the one that a time is in, or so many later.
func (s *Shape) wallEdge(wall int64, later int) int64 {
	if s.Unit >= unitMonth {
		return s.Unit.edge(wall, later)
	}
	period, first := s.PeriodNS/nsPerSecond, int64(0)
	if s.Unit == unitWeek {
		first = firstMonday
	}
	return (floorDiv(wall-first, period)+int64(later))*period + first
}

// edgeAfter is the first edge after an instant, both in Unix s. It is not always the next one on the wall: where clocks go back over
// midnight, the day has begun before, and where they skip a day, it begins together with the next.
func (s *Shape) edgeAfter(sec int64) int64 {
	for wall := s.wallEdge(s.Zone.wall(sec), 1); ; wall = s.wallEdge(wall, 1) {
		if edge := s.Zone.first(wall); edge > sec {
			return edge
		}
	}
}

// beginNS is when the window with this end begins, both in Unix ns. Before 1970 is 0.
func (l *Limit) beginNS(end uint64) uint64 {
	if !l.uneven() {
		return end - min(end, uint64(l.PeriodNS))
	}
	last := l.Zone.wall(int64((max(end, 1) - 1) / nsPerSecond))
	return uint64(max(0, l.Zone.first(l.wallEdge(last, 0)))) * nsPerSecond
}

// nextEdgeNS is when the window of nowNS ends, in Unix ns. A window that is not aligned begins now.
func (l *Limit) nextEdgeNS(nowNS int64) uint64 {
	if !l.byWall() {
		return uint64(nowNS + l.PeriodNS)
	}
	if l.uneven() {
		return uint64(l.edgeAfter(nowNS/nsPerSecond) * nsPerSecond)
	}
	first := -int64(l.Zone) * 60 * nsPerSecond
	if l.Unit == unitWeek {
		first += firstMonday * nsPerSecond
	}
	return uint64((floorDiv(nowNS-first, l.PeriodNS)+1)*l.PeriodNS + first)
}

// Realign corrects an aligned state after the wall clock was set by byNS, to nowNS. A window ends no later than the window of nowNS; if
// calls are booked ahead, it moves with the clock. A block stays as long as it was.
func (l *Limit) Realign(st *State, byNS, nowNS int64) {
	end := l.nextEdgeNS(nowNS)
	if shifted := ShiftInstant(st.A, byNS); st.B > math.MaxUint32 && shifted > end && shifted <= latestBooked {
		end = l.beginNS(l.nextEdgeNS(int64(shifted)))
		st.A = end
	}
	st.A = min(st.A, end)
	st.BlockedNS = ShiftInstant(st.BlockedNS, byNS)
}

// giveBack gives to windows that are not over.
func (w *window) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	over := func(taken lease.Lease) bool { return !l.inWindow(st, taken.TakenNS, uint64(nowNS)) }
	w.plain.giveBack(l, st, nowNS, slices.DeleteFunc(from, over))
}

// inWindow reports whether the window of an instant is not over. It may be ahead.
func (l *Limit) inWindow(st *State, ns, now uint64) bool {
	switch period := uint64(l.PeriodNS); {
	case l.Aligned():
		return l.nextEdgeNS(int64(ns)) > now
	case ns < st.A:
		return st.A-(st.A-1-ns)/period*period > now
	}
	return ns == st.A
}

func (*window) appendText(b []byte, _ Shape, st State) []byte {
	b = appendField(b, "until", st.A)
	b = appendField(b, "used", st.B&math.MaxUint32)
	if before := st.B >> 32; before > 0 {
		b = appendField(b, "before", before)
	}
	return b
}

func (*window) read(r *stateReader, _ *Limit) (st State) {
	st.A = r.number("until", latestEnd)
	st.B = min(r.number("used", mostUsed), math.MaxUint32) // earlier versions counted on
	if strings.HasPrefix(r.rest, "before=") {
		before := r.number("before", mostBefore)
		r.bad = r.bad || before == 0 || st.B == 0
		st.B |= before << 32
	}
	return st
}
