package cell

import "time"

// Window counts calls in windows of time: from the first call on, or aligned to the clock or the calendar. State.A is when the
// window ends, State.B what was used in it. Around an edge it lets through up to twice its count: all of it at the end of one
// window and again at the start of the next.
func (l *Limit) window(st *State, nowNS, cost int64, mode Mode) outcome {
	now := uint64(nowNS)
	end, used := st.A, st.B
	if now >= end || used == 0 {
		end, used = 0, 0
	}
	passes := used+uint64(cost) <= uint64(l.Count)
	if cost > 0 && (mode == Force || mode == Take && passes) {
		if end == 0 {
			end = l.nextEdgeNS(nowNS)
		}
		used = min(used+uint64(cost), mostUsed)
		st.A, st.B = end, used
	}
	o := l.used(used, end, now)
	if mode != Force && cost > 0 && !passes {
		o.retryNS = Never
		if cost <= l.Count {
			o.retryNS = o.resetNS
		}
	}
	return o
}

func (l *Limit) giveWindow(st *State, nowNS, n int64) int64 {
	if uint64(nowNS) >= st.A {
		return 0
	}
	given := min(uint64(n), st.B)
	st.B -= given
	return int64(given)
}

func (l *Limit) endOfWindow(st *State) uint64 {
	if st.B == 0 {
		return 0
	}
	return st.A
}

// nextEdgeNS is when the window that nowNS is in ends, in Unix ns. One that is not aligned begins now.
func (l *Limit) nextEdgeNS(nowNS int64) uint64 {
	if l.Unit == Span && !l.Clock {
		return uint64(nowNS + l.PeriodNS)
	}
	zoneNS := int64(l.ZoneMin) * 60 * nsPerSecond
	local := nowNS + zoneNS
	if l.Unit == Span {
		return uint64(floorDiv(local, l.PeriodNS)*l.PeriodNS + l.PeriodNS - zoneNS)
	}
	return uint64(l.Unit.next(local) - zoneNS)
}

// Realign keeps an aligned state right when the wall clock was set by so much, to nowNS: a window ends no later than the one
// that it is now in, and a block stays as long as it was.
func (l *Limit) Realign(st *State, byNS, nowNS int64) {
	st.A = min(st.A, l.nextEdgeNS(nowNS))
	st.BlockedNS = ShiftInstant(st.BlockedNS, byNS)
}

// shortestNS is the length of the shortest window of a unit.
func (u Unit) shortestNS() int64 {
	const day = 86_400 * nsPerSecond
	return [...]int64{Second: nsPerSecond, Minute: 60 * nsPerSecond, Hour: 3_600 * nsPerSecond, Day: day, Week: 7 * day, Month: 28 * day, Year: 365 * day}[u]
}

// next is the first edge of a unit after an instant, both in the time of the zone. A zone here is an offset: no hour is
// left out or comes twice.
func (u Unit) next(ns int64) int64 {
	switch u {
	case Month, Year:
		at := time.Unix(0, ns).UTC()
		year, month := at.Year(), at.Month()+1
		if u == Year {
			year, month = year+1, time.January
		}
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	case Week: // 1970 began on a Thursday
		const monday = 4 * 86_400 * nsPerSecond
		week := u.shortestNS()
		return (floorDiv(ns-monday, week)+1)*week + monday
	}
	length := u.shortestNS()
	return (floorDiv(ns, length) + 1) * length
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
