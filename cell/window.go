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
// State.B has what was used in the window before it, too. No call passes until the last window begins, so the windows further back count as
// full. before is 0 if nothing was booked.
type window struct{ pairs }

func (w *window) decide(l *Limit, st *State, nowNS, cost int64, mode Mode) outcome {
	now, end, used := uint64(nowNS), st.A, st.B
	if now >= end || used == 0 {
		end, used = 0, 0
	}
	if used > math.MaxUint32 {
		var before uint64
		if used, before = l.counting(st, nowNS); before > 0 {
			return w.decideAhead(l, st, now, cost, mode)
		}
	}
	taken, waits := l.counts(used, cost, mode)
	if taken {
		if end == 0 {
			end = l.nextEdgeNS(nowNS)
		}
		used = min(used+uint64(cost), mostUsed)
		st.A = end
		st.setPair(used, 0)
	}
	o := l.used(used, end, now)
	if waits {
		o.retryNS = o.resetNS
	}
	return o
}

// fit makes the ring that large numbers need when calls are booked, or forced into what is booked.
func (*window) fit(l *Limit, st *State, nowNS, cost int64) (words int) {
	used, before := l.counting(st, nowNS)
	if before == 0 && used+uint64(cost) <= uint64(l.Count) || max(used, before)+uint64(cost) <= mostBefore {
		return 0
	}
	return st.fitPair()
}

func (*window) holds(l *Limit, st *State, nowNS, cost int64) bool {
	used, before := l.counting(st, nowNS)
	return max(used, before)+uint64(cost) <= MaxCost
}

// counting is what still counts of a window's state. before is 0 once the last window has begun.
func (l *Limit) counting(st *State, nowNS int64) (used, before uint64) {
	if uint64(nowNS) >= st.A {
		return 0, 0
	}
	if used, before = st.pair(); before > 0 && uint64(nowNS) >= l.beginNS(st.A) {
		before = 0
	}
	return used, before
}

// decideAhead decides before the last booked window begins: nothing passes. A forced call counts in the window that it is in, and is
// forgotten with it.
func (*window) decideAhead(l *Limit, st *State, now uint64, cost int64, mode Mode) outcome {
	o, begin := outcome{resetNS: st.A - now}, l.beginNS(st.A)
	used, before := st.pair()
	switch {
	case cost == 0:
	case mode == Force:
		if now >= l.beginNS(begin) {
			st.setPair(used, min(before+uint64(cost), mostUsed))
		}
	case used+uint64(cost) <= uint64(l.Count):
		o.retryNS = begin - now
	default:
		o.retryNS = o.resetNS
	}
	return o
}

// book takes a call in the first window from now on with room for it and with no later window booked.
func (*window) book(l *Limit, st *State, now, cost uint64) (at uint64) {
	end := st.A
	used, before := st.pair()
	switch {
	case now >= end || used == 0:
		st.A = l.nextEdgeNS(int64(now))
		st.setPair(cost, 0)
		return now
	case used+cost <= uint64(l.Count):
		if before > 0 {
			now = max(now, l.beginNS(end))
		}
		st.setPair(used+cost, before)
		return now
	case end > latestBooked:
		return Never
	}
	st.A = l.nextEdgeNS(int64(end))
	st.setPair(cost, used)
	return end
}

// give gives back what is booked for the last window first, then for the window before it, and so on.
func (*window) give(l *Limit, st *State, nowNS, n int64) int64 {
	now, count, left := uint64(nowNS), uint64(l.Count), uint64(n)
	if now >= st.A {
		return 0
	}
	for left > 0 && st.B > 0 {
		used, before := st.pair()
		part := min(left, used)
		left -= part
		if part < used {
			st.setPair(used-part, before)
			break
		}
		end := l.beginNS(st.A)
		if before == 0 || end <= now {
			st.setPair(0, 0)
			break
		}
		passes := max(now, st.BlockedNS) // not sooner
		if before == count && end > passes {
			var full uint64
			end, full = l.skipBack(end, passes, left/count)
			left -= full * count
		}
		beforeIt := uint64(0)
		if l.beginNS(end) > passes { // others are before this one
			beforeIt = count
		}
		st.A = end
		st.setPair(before, beforeIt)
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

// pairs is what window and slide share.
type pairs struct{ plain }

// whole is the end of the window, unless calls are booked in a later one.
func (*window) whole(l *Limit, st *State, now uint64) uint64 {
	if now >= st.A {
		return l.nextEdgeNS(int64(now))
	}
	if l.beginNS(st.A) > now {
		return 0
	}
	return st.A
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
	from := int64(s.From) * 60
	if s.Unit >= unitMonth {
		return s.Unit.edge(wall, later, from)
	}
	period, first := s.PeriodNS/nsPerSecond, from
	if s.Unit == unitWeek {
		first += firstMonday
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
	first := (int64(l.From) - int64(l.Zone)) * 60 * nsPerSecond
	if l.Unit == unitWeek {
		first += firstMonday * nsPerSecond
	}
	return uint64((floorDiv(nowNS-first, l.PeriodNS)+1)*l.PeriodNS + first)
}

// Realign corrects an aligned state after the wall clock was set by byNS, to nowNS. A window ends no later than the window of nowNS; if
// calls are booked ahead, it moves with the clock. A block stays as long as it was.
func (l *Limit) Realign(st *State, byNS, nowNS int64) {
	end := l.nextEdgeNS(nowNS)
	_, before := st.pair()
	if shifted := ShiftInstant(st.A, byNS); before > 0 && shifted > end && shifted <= latestBooked {
		end = l.beginNS(l.nextEdgeNS(int64(shifted)))
		st.A = end
	}
	st.A = min(st.A, end)
	st.BlockedNS = ShiftInstant(st.BlockedNS, byNS)
}

// takenNS is not before the window begins.
func (*window) takenNS(l *Limit, st *State, nowNS int64) uint64 {
	if _, before := st.pair(); before > 0 { // a forced call counts in one before it
		return uint64(nowNS)
	}
	return max(uint64(nowNS), l.beginNS(st.A))
}

// giveBack gives to windows that are not over.
func (w *window) giveBack(l *Limit, st *State, nowNS int64, from []lease.Lease) {
	over := func(taken lease.Lease) bool { return !l.inWindow(st, taken.TakenNS, taken.ExpiryNS) }
	w.plain.giveBack(l, st, nowNS, slices.DeleteFunc(from, over))
}

// inWindow reports whether the window of an instant is not over, if the last one of the state is not. It may be ahead.
func (l *Limit) inWindow(st *State, ns, now uint64) bool {
	switch period := uint64(l.PeriodNS); {
	case l.Aligned():
		return l.nextEdgeNS(int64(ns)) > now
	case ns < st.A:
		return st.A-(st.A-1-ns)/period*period > now
	}
	return true
}

func (*window) appendText(b []byte, _ Shape, st State) []byte {
	used, before := st.pair()
	b = appendField(appendField(b, "until", st.A), "used", used)
	if before > 0 {
		b = appendField(b, "before", before)
	}
	return b
}

func (*window) read(r *stateReader, _ *Limit) (st State) {
	st.A = r.number("until", latestEnd)
	used, before := r.number("used", mostUsed), uint64(0)
	if strings.HasPrefix(r.rest, "before=") {
		before = r.number("before", mostUsed)
		r.bad = r.bad || before == 0 || used == 0
	}
	st.setPair(used, before)
	return st
}
