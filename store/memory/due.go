package memory

import "celld/cell"

// giveDue gives what the leases held that have ended back to their limits, and reports whether the key is still there. It runs whenever
// a key is looked up, and so before anybody sees a state. That is as good as at the end of each lease: meanwhile nobody takes.
//
// WATCH does not see it, as it does not see what flows back.
func (sh *shard) giveDue(n uint32, e *slot, nowNS int64) bool {
	if !sh.anyDue(e, nowNS) {
		return true
	}
	for p := e.firstTally(); p != 0; {
		next := sh.tallies.at(p).next.Load()
		sh.giveDueOf(e, sh.tallies.at(p), nowNS)
		p = next
	}
	if !e.holdsLimits() || sh.limitsEndNS(e) <= uint64(nowNS) {
		sh.remove(n, e)
		return false
	}
	was := sh.endNS(n, e)
	e.tat.Store(sh.limitsEndNS(e))
	if end := sh.endNS(n, e); end < was {
		sh.ends.move(&sh.slabs, n, e, end)
		sh.publish()
	}
	sh.journal.mark(n, e)
	if e.has(flagWaited) {
		sh.flowedBack(n, e, nowNS)
	}
	return true
}

// flowedBack notes for those who wait for a key that leases have flowed back: nobody can have passed before by that. Their timers
// know of the leases' ends.
func (sh *shard) flowedBack(n uint32, e *slot, nowNS int64) {
	var scratch [hugeKey]byte
	for _, q := range sh.waited[string(sh.keys.view(n, e, &scratch))] {
		q.seenNS = max(q.seenNS, nowNS)
		q.ahead.stale = true
	}
}

// nextDueNS is when the next of the leases flows back that were taken from a call's limit.
func (c *call) nextDueNS() int64 {
	if c.Limit.HoldsLeases() {
		return notDue
	}
	_, p := c.companion()
	if p == nil {
		return notDue
	}
	st := c.sh.tallies.state(p)
	return cell.NextDue(&st)
}

func (sh *shard) anyDue(e *slot, nowNS int64) bool {
	for p := range sh.talliesOf(e) {
		if p.code.Load()&cell.CodeOfLeases != 0 {
			if st := sh.tallies.state(p); cell.Due(&st, nowNS) {
				return true
			}
		}
	}
	return false
}

// giveDueOf does it for one companion. One that is empty then goes, unless it is all that the key has.
func (sh *shard) giveDueOf(e *slot, p *tally, nowNS int64) {
	if p.code.Load()&cell.CodeOfLeases == 0 {
		return
	}
	st := sh.tallies.state(p)
	var due []cell.Lease
	for l := range cell.DropDue(&st, nowNS) {
		if due = append(due, l); len(due) == dueBatch {
			sh.giveBack(e, p, due, nowNS)
			due = due[:0]
		}
	}
	p.setState(&st)
	sh.giveBack(e, p, due, nowNS)
	sh.dropIfEmpty(e, p)
}

// dueBatch is how many leases are given back at a time: 288 KB of them.
const dueBatch = 4096

// giveBack gives what a companion's leases held back to its limit, if that is there.
func (sh *shard) giveBack(e *slot, p *tally, from []cell.Lease, nowNS int64) {
	base := sh.baseOf(e, p)
	if base == nil || len(from) == 0 {
		return
	}
	l, companion, st := base.limit(), p.shape(), sh.tallies.state(base)
	if l.Aligned() {
		for i := range from {
			from[i].TakenNS = cell.ShiftInstant(from[i].TakenNS, sh.wall.Load())
		}
	}
	l.GiveBack(&st, sh.timeOf(&l, nowNS), &companion, from)
	base.setState(&st)
	sh.tallies.untell(base)
}

// baseOf is the tally of the limit from which a companion's leases were taken, or nil.
func (t *table) baseOf(e *slot, companion *tally) *tally {
	l := cell.Limit{Shape: companion.shape()}
	l.Leases = false
	return t.findTally(e, &l, companion.policy.Load(), l.Code())
}

// dropIfEmpty removes a tally of leases that has none, unless it is the last of its key.
func (sh *shard) dropIfEmpty(e *slot, p *tally) {
	st := sh.tallies.state(p)
	if cell.Leases(&st) > 0 || st.BlockedNS != 0 {
		return
	}
	sh.dropTally(e, p)
}

// dropTally removes a tally, unless it is the last of its key.
func (sh *shard) dropTally(e *slot, p *tally) {
	t := &sh.tallies
	first := e.firstTally()
	var before *tally
	n := first
	for t.at(n) != p {
		before = t.at(n)
		n = before.next.Load()
	}
	next := p.next.Load()
	switch {
	case before != nil:
		before.next.Store(next)
	case next == 0:
		return
	default:
		t.at(next).touchedNS.Store(p.touchedNS.Load())
		e.setInfo(touchedMask, uint64(next))
	}
	sh.releaseBytes(t.bytes(p))
	t.put(n)
	sh.untell(e) // where a log is only extended, the files would keep the tally
}
