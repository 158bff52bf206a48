package table

import (
	"sync/atomic"

	"celld/cell"
)

// WallAhead is how far wall time is ahead of limit time. Both meet in the store.
//
// Limit time is what Access.NowNS says. It goes on as time passes and never steps when the wall clock is set, so that nobody is locked out
// or freed by that: TATs, the states of CL.TAKE's limits, blocks and ends of rules are kept in it.
//
// Wall time is limit time + WallAhead. What people have named by the clock is kept in it: expiries, as in Redis those of
// EXPIRE too, and the windows of the clock or the calendar. All that leaves the store or comes into it is in wall time:
// Value, LimitState and the texts of settings, and so every file and reply.
type WallAhead struct{ atomic.Int64 }

// Realign moves the states of a key that are aligned to the wall clock, which was set by byNS to wallNS.
func (t *Table) Realign(e *Slot, byNS, wallNS int64) {
	for p := range t.LimitsOf(e) {
		if shape := p.Shape(); !shape.Aligned() {
			continue
		}
		l, st := t.Limits.Limit(p), t.Limits.State(p)
		l.Realign(&st, byNS, wallNS)
		p.SetState(&st)
	}
}

// TimeOf is now in the time that a limit is decided in.
func (t *Table) TimeOf(l *cell.Limit, nowNS int64) int64 {
	if l.Aligned() {
		nowNS += t.Wall.Load()
	}
	return nowNS
}

// LimitEndNS is when a limit has nothing left to remember, in limit time.
func (t *Table) LimitEndNS(l *cell.Limit, st *cell.State) uint64 {
	return LimitEndNS(l, st, t.Wall.Load())
}

func LimitEndNS(l *cell.Limit, st *cell.State, aheadNS int64) uint64 {
	end := l.EndNS(st)
	if l.Aligned() {
		end = cell.ShiftInstant(end, -aheadNS)
	}
	return end
}
