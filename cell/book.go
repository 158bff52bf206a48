package cell

// Bookable reports that a call can be booked ahead of its moment, and so that the wait of each of many who wait is known.
func (l *Limit) Bookable() bool { return l.Algo == GCRA || l.Algo == Window }

// Forecast is how long a call of this cost has to wait, in ns, if nobody else calls: 0 if it passes now, Never if it never does.
func (l *Limit) Forecast(st *State, nowNS, cost int64) (waitNS uint64) {
	if d := l.Decide(st, nowNS, cost, Peek); d.Limited {
		return d.RetryAfterNS
	}
	return 0
}

// Book takes a call at the first moment at which it passes, and returns how long that is from now, in ns. Calls that are decided
// later are decided as though they came after it. A call that never passes is not booked: then it returns Never. The limit must
// be Bookable.
func (l *Limit) Book(st *State, nowNS, cost int64) (waitNS uint64) {
	if waitNS = l.Forecast(st, nowNS, cost); waitNS != Never {
		l.Decide(st, nowNS, cost, Force)
	}
	return waitNS
}
