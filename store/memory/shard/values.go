package shard

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// inWall is a state as it leaves the store, with the wall time so much ahead.
func inWall(st store.Value, aheadNS int64) store.Value {
	return shifted(st, aheadNS, func(l *store.LimitState) { stateToWall(l, aheadNS) })
}

// fromWall is a state as it comes in.
func fromWall(st store.Value, aheadNS int64) store.Value {
	return shifted(st, -aheadNS, func(l *store.LimitState) { StateFromWall(l, aheadNS) })
}

func shifted(st store.Value, ns int64, shift func(*store.LimitState)) store.Value {
	if ns == 0 {
		return st
	}
	st.TAT = cell.ShiftInstant(st.TAT, ns)
	if st.Limits != nil {
		limits := st.Limits.Clone()
		for i := range limits {
			shift(&limits[i])
		}
		st.Limits = &limits
	}
	return st
}

func stateToWall(l *store.LimitState, aheadNS int64) {
	if !l.Limit.Aligned() {
		l.Limit.Shift(&l.State, aheadNS)
		l.Told = l.Told.Shift(aheadNS)
	}
}

func StateFromWall(l *store.LimitState, aheadNS int64) {
	if !l.Limit.Aligned() {
		l.Limit.ShiftBack(&l.State, aheadNS)
	}
}

// over reports whether a state would be dead at once if it were put now: its TAT, which is limit time, has passed, or its expiry, which is
// wall time. A count has no TAT to pass, and dies at once where it is to live as long as that.
func over(st store.Value, nowNS, wallNS int64) bool {
	switch {
	case st.TAT <= uint64(nowNS) && (!st.IsCount() || st.ExpiryNS == store.AtTAT):
		return true
	case st.ExpiryNS == store.NoExpiry || st.ExpiryNS == store.AtTAT:
		return false
	}
	return st.ExpiryNS <= wallNS
}

// limitBytes is what the limits of a state take, by the estimate of MaxBytes.
func limitBytes(st store.Value) int64 {
	if st.Limits == nil {
		return 0
	}
	return bytesOfLimits(*st.Limits)
}

// bytesOfLimits is what they take, by the estimate of MaxBytes.
func bytesOfLimits(l store.Limits) (n int64) {
	for i := range l {
		n += table.BytesOf(&l[i].Limit, policyID(&l[i]), l[i].State.Ring)
	}
	return n
}
