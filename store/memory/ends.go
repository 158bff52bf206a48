package memory

import "celld/store/memory/table"

// sweep removes up to most dead slots in at most perLock steps, each of which removes one or sorts one anew that only
// seemed to be dead.
func (sh *shard) sweep(nowNS int64, most int) (removed int) {
	defer sh.publish()
	if sh.Ends.Late != table.NoSlot && sh.Ends.LateNS <= uint64(nowNS) {
		removed = sh.sweepLate(nowNS, most)
	}
	for steps := removed; steps < perLock && removed < most && sh.Ends.NextNS() <= uint64(nowNS); steps++ {
		n := sh.Ends.Open()
		e := sh.Slabs.At(n)
		if end := sh.EndNS(n, e); end > uint64(nowNS) {
			sh.Ends.Move(&sh.Slabs, n, e, end)
		} else {
			sh.expire(n, e)
			removed++
		}
	}
	return removed
}

// sweepLate is sweep for the slots that the wheel had passed when they were put. They are few: what callers insert while
// the clock of one is behind that of another.
func (sh *shard) sweepLate(nowNS int64, most int) (removed int) {
	earliestNS := uint64(table.Never)
	for n := sh.Ends.Late; n != table.NoSlot; {
		e := sh.Slabs.At(n)
		next, end := e.NextEnd(), sh.EndNS(n, e)
		switch {
		case end <= uint64(nowNS) && removed < most:
			sh.expire(n, e)
			removed++
		case end > uint64(nowNS) && end >= sh.Ends.NowNS:
			sh.Ends.Move(&sh.Slabs, n, e, end)
		default:
			earliestNS = min(earliestNS, end)
		}
		n = next
	}
	sh.Ends.LateNS = earliestNS
	return removed
}

// Sweep does one step of removing dead keys, under one short lock: it handles 64 keys at most, of which it removes those
// that are dead. It reports whether there are more that may be. Call it every 100 ms or so until there are none: memory is
// then that of the live keys, and the calls that must first get rid of dead ones (Len, Random, inserts at capacity) find few.
//
// It also removes rules that are over, and evicts what is above a limit that was lowered, 64 keys at most.
func (s *Store) Sweep(nowNS int64) (more bool) {
	if s.pruneSome(nowNS) {
		return true
	}
	s.SweepRules(nowNS)
	if s.trim(nowNS) == perLock {
		return true
	}
	start := int(s.sweeps.Add(1))
	for i := range s.shards {
		sh := &s.shards[(start+i)&(len(s.shards)-1)]
		if sh.nextEndNS.Load() <= uint64(nowNS) {
			sh.lock(nowNS)
			sh.sweep(nowNS, perLock)
			sh.unlock()
			return s.SweepDue(nowNS)
		}
	}
	return false
}

// SweepDue says, without any lock, whether Sweep may have something to do.
func (s *Store) SweepDue(nowNS int64) bool {
	if s.room.over() || s.RulesDue(nowNS) || s.lossesDue() {
		return true
	}
	for i := range s.shards {
		if s.shards[i].nextEndNS.Load() <= uint64(nowNS) {
			return true
		}
	}
	return false
}
