package shard

import (
	"celld/cell"
	"celld/cell/lease"
	"celld/store/memory/table"
)

// GiveDue gives what the leases held that have ended back to their limits, and reports whether the key is still there. It runs whenever
// a key is looked up, and so before anybody sees a state. That is as good as at the end of each lease: meanwhile nobody takes.
//
// WATCH does not see it, as it does not see what flows back.
func (sh *Shard) GiveDue(n uint32, e *table.Slot, nowNS int64) bool {
	if !sh.anyDue(e, nowNS) {
		return true
	}
	for p := e.FirstTally(); p != 0; {
		next := sh.Tallies.At(p).Next.Load()
		sh.giveDueOf(e, sh.Tallies.At(p), nowNS)
		p = next
	}
	if !e.HoldsLimits() || sh.LimitsEndNS(e) <= uint64(nowNS) {
		sh.Remove(n, e)
		return false
	}
	was := sh.EndNS(n, e)
	e.TAT.Store(sh.LimitsEndNS(e))
	if end := sh.EndNS(n, e); end < was {
		sh.Ends.Move(&sh.Slabs, n, e, end)
		sh.publish()
	}
	sh.Journal.Mark(n, e)
	if e.Has(table.FlagWaited) {
		sh.flowedBack(n, e, nowNS)
	}
	return true
}

// flowedBack notes for those who wait for a key that leases have flowed back: nobody can have passed before by that. Their timers
// know of the leases' ends.
func (sh *Shard) flowedBack(n uint32, e *table.Slot, nowNS int64) {
	var scratch [table.HugeKey]byte
	for _, q := range sh.waited.OfKey[string(sh.Keys.View(n, e, &scratch))] {
		q.SeenNS = max(q.SeenNS, nowNS)
		q.ahead.stale = true
	}
}

func (sh *Shard) anyDue(e *table.Slot, nowNS int64) bool {
	for p := range sh.TalliesOf(e) {
		if p.Code.Load()&cell.CodeOfLeases != 0 {
			if st := sh.Tallies.State(p); st.Leases().NextExpiryNS() <= nowNS {
				return true
			}
		}
	}
	return false
}

// giveDueOf does it for one companion. One that is empty then goes, unless it is all that the key has.
func (sh *Shard) giveDueOf(e *table.Slot, p *table.Tally, nowNS int64) {
	if p.Code.Load()&cell.CodeOfLeases == 0 {
		return
	}
	st := sh.Tallies.State(p)
	var due []lease.Lease
	for l := range st.Leases().DropExpired(nowNS) {
		if due = append(due, l); len(due) == dueBatch {
			sh.giveBack(e, p, due, nowNS)
			due = due[:0]
		}
	}
	p.SetState(&st)
	sh.giveBack(e, p, due, nowNS)
	sh.DropIfEmpty(e, p)
}

// dueBatch is how many leases are given back at a time: 288 KB of them.
const dueBatch = 4096

// giveBack gives what a companion's leases held back to its limit, if that is there.
func (sh *Shard) giveBack(e *table.Slot, p *table.Tally, from []lease.Lease, nowNS int64) {
	base := sh.BaseOf(e, p)
	if base == nil || len(from) == 0 {
		return
	}
	l, companion, st := base.Limit(), p.Shape(), sh.Tallies.State(base)
	if l.Aligned() {
		for i := range from {
			from[i].TakenNS = cell.ShiftInstant(from[i].TakenNS, sh.Wall.Load())
		}
	}
	l.GiveBack(&st, sh.TimeOf(&l, nowNS), &companion, from)
	base.SetState(&st)
	sh.Tallies.Untell(base)
}

// DropIfEmpty removes a tally of leases that has none, unless it is the last of its key.
func (sh *Shard) DropIfEmpty(e *table.Slot, p *table.Tally) {
	st := sh.Tallies.State(p)
	if st.Leases().Len() > 0 || st.BlockedNS != 0 {
		return
	}
	sh.RemoveTallies(e, func(of *table.Tally) bool { return of == p })
	sh.untell(e) // where a log is only extended, the files would keep the tally
}

// leased reports whether a key has leases that have not ended. Such a key is not evicted.
func (sh *Shard) leased(e *table.Slot, nowNS int64) bool {
	for p := range sh.TalliesOf(e) {
		if p.HoldsLeases() && sh.TallyEndNS(p) > uint64(nowNS) {
			return true
		}
	}
	return false
}

// LinkedOf are the keys that a lease leads to. found is false if there is none that has not ended.
func (sh *Shard) LinkedOf(e *table.Slot, id, nowNS int64) (names [][]byte, found bool) {
	for p := range sh.TalliesOf(e) {
		if p.HoldsLeases() {
			st := sh.Tallies.State(p)
			links, has := st.Leases().Links(uint64(id), nowNS)
			keys, _ := lease.NamesIn(links)
			names, found = append(names, keys...), found || has
		}
	}
	return names, found
}

// FindLease looks for a lease that has not ended in a tally.
func (sh *Shard) FindLease(p *table.Tally, id, nowNS int64) (st cell.State, l lease.Lease, found bool) {
	if p.HoldsLeases() {
		st = sh.Tallies.State(p)
		l, found = st.Leases().Find(uint64(id), nowNS)
	}
	return st, l, found
}

// DropLease ends the leases of an ID in a tally, and gives back what they hold beyond n.
func (sh *Shard) DropLease(e *table.Slot, p *table.Tally, id, n, nowNS int64) {
	for {
		st := sh.Tallies.State(p)
		l, found := st.Leases().Drop(uint64(id), nowNS)
		if !found {
			return
		}
		p.SetState(&st)
		if back := l.Cost - n; back > 0 && p.Code.Load()&cell.CodeOfLeases != 0 {
			l.Cost = back
			sh.giveBack(e, p, []lease.Lease{l}, nowNS)
		}
	}
}
