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
