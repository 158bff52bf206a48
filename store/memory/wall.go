package memory

import (
	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

// WallNS is the wall time at an instant of limit time. At first they are the same.
func (s *Store) WallNS(nowNS int64) int64 { return nowNS + s.wall.Load() }

// SettingText is what a setting says: see policy.Set.
func (s *Store) SettingText(setting policy.Setting) (string, bool) {
	return s.Set.SettingText(setting, s.wall.Load())
}

// PutSetting is the reverse of SettingText. A rule that is over is left out.
func (s *Store) PutSetting(setting policy.Setting, text string, nowNS int64) error {
	return s.Set.PutSetting(setting, text, nowNS, s.wall.Load())
}

// SetWall says that the wall clock shows wallNS at nowNS. A call that runs at the same time may see both the old and the new wall
// time; a caller that cannot have that must keep it out. SetWall looks at each key: a million, half of them of CL.TAKE, took
// 50 ms.
func (s *Store) SetWall(wallNS, nowNS int64) {
	s.drain.mu.Lock()
	defer s.drain.mu.Unlock()
	ahead := wallNS - nowNS
	by := ahead - s.wall.Swap(ahead)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.lock(nowNS)
		sh.setWall(by, wallNS)
		sh.pokeAll(nowNS)
		sh.unlock()
	}
}

// setWall moves the keys that end by the wall clock to their new places in the wheel. Logs were told in the old wall time, so they
// are told anew.
func (sh *shard) setWall(byNS, wallNS int64) {
	for n := uint32(1); n < sh.Slabs.Top; n++ {
		e := sh.Slabs.At(n)
		e.Settle()
		if e.List() == table.FreeList || !e.HoldsLimits() && !e.Has(table.FlagExpiry) {
			continue
		}
		if e.HoldsLimits() {
			sh.Realign(e, byNS, wallNS)
			sh.untell(e)
			e.TAT.Store(sh.LimitsEndNS(e))
		}
		sh.Ends.Move(&sh.Slabs, n, e, sh.EndNS(n, e))
	}
	sh.publish()
}

// inWall is a state as it leaves the store, with the wall time so much ahead.
func inWall(st store.Value, aheadNS int64) store.Value {
	return shifted(st, aheadNS, func(l *store.LimitState) { stateToWall(l, aheadNS) })
}

// fromWall is a state as it comes in.
func fromWall(st store.Value, aheadNS int64) store.Value {
	return shifted(st, -aheadNS, func(l *store.LimitState) { stateFromWall(l, aheadNS) })
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

func stateFromWall(l *store.LimitState, aheadNS int64) {
	if !l.Limit.Aligned() {
		l.Limit.ShiftBack(&l.State, aheadNS)
	}
}

// inWall is fn, told of states in wall time.
func (s *Store) inWall(fn func(key []byte, st store.Value)) func(key []byte, st store.Value) {
	ahead := s.wall.Load()
	if ahead == 0 {
		return fn
	}
	return func(key []byte, st store.Value) { fn(key, inWall(st, ahead)) }
}

// over reports whether a state would be dead at once if it were put now: its expiry, which is wall time, has passed, or it lives as
// long as its TAT, which is limit time, and that has passed. Limits always live as long as their TAT.
func over(st store.Value, nowNS, wallNS int64) bool {
	if st.Kind == store.HoldsLimits && st.TAT <= uint64(nowNS) {
		return true
	}
	switch st.ExpiryNS {
	case store.NoExpiry:
		return false
	case store.AtTAT:
		return st.TAT <= uint64(nowNS)
	}
	return st.ExpiryNS <= wallNS
}
