package waiting

import (
	"math"

	"celld/cell"
)

// StandBehind makes a decision that of a call behind those who wait, which passes in waitNS; 0: it costs nothing, so it need not wait.
func StandBehind(d *cell.Decision, waitNS uint64) {
	d.Remaining = 0
	if waitNS == 0 {
		return
	}
	if d.Limited {
		waitNS = max(waitNS, d.RetryAfterNS)
	}
	d.Limited, d.RetryAfterNS = true, waitNS
}

// Owe books the sum of what several wait for, at nowNS. The limit is additive.
func Owe(l *cell.Limit, st *cell.State, nowNS, cost int64) {
	l.Decide(st, int64(min(max(uint64(nowNS), st.BlockedNS), math.MaxInt64)), cost, cell.Force)
}
