package shard

import (
	"celld/cell"
	"celld/cell/lease"
	"celld/store/memory/table"
)

// ExpireLeases gives back what leases of a key held whose time is over, and reports whether the key is still there. It runs whenever a key
// is looked up, and so before anybody sees a state. That is as good as at the end of each lease: meanwhile nobody takes, and GiveBack
// computes as of then.
//
// WATCH does not notice, as it does not notice what flows back.
func (sh *Shard) ExpireLeases(n uint32, e *table.Slot, nowNS int64) bool {
	if !sh.leasesExpired(e, nowNS) {
		return true
	}
	last := uint64(0)
	for p := e.FirstLimit(); p != 0; {
		next := sh.Limits.At(p).Next.Load()
		last = max(last, sh.expireLeasesOf(e, sh.Limits.At(p), nowNS))
		p = next
	}
	if !e.HoldsLimits() || sh.LimitsEndNS(e) <= uint64(nowNS) {
		sh.Remove(n, e)
		return false
	}
	was := sh.EndNS(n, e)
	e.TAT.Store(sh.LimitsEndNS(e))
	if end := sh.EndNS(n, e); end < was {
		sh.Wheel.Move(&sh.Slabs, n, e, end)
		sh.publish()
	}
	sh.Journal.Mark(n, e)
	if e.Has(table.FlagWaited) {
		sh.flowedBack(n, e, int64(last))
	}
	return true
}

// flowedBack notes in the lines of a key when the last of some leases flowed back: nobody can have passed before by that. The timers of the
// lines heed the leases' ends already.
func (sh *Shard) flowedBack(n uint32, e *table.Slot, lastNS int64) {
	var scratch [table.HugeKey]byte
	for _, q := range sh.waited.OfKey[string(sh.Keys.View(e, &scratch))] {
		q.NotBeforeNS = max(q.NotBeforeNS, lastNS)
		q.ahead.stale = true
	}
}

// leasesExpired reports whether a key has a lease whose time is over.
func (sh *Shard) leasesExpired(e *table.Slot, nowNS int64) bool {
	for p := range sh.LimitsOf(e) {
		if p.Code.Load()&cell.CodeOfLeases != 0 {
			if st := sh.Limits.State(p); st.Leases().NextExpiryNS() <= nowNS {
				return true
			}
		}
	}
	return false
}

// expireLeasesOf does it for one companion, and returns when the last of its leases expired. A companion that is empty then goes, unless
// the key holds nothing else.
func (sh *Shard) expireLeasesOf(e *table.Slot, p *table.LimitEntry, nowNS int64) (last uint64) {
	if p.Code.Load()&cell.CodeOfLeases == 0 {
		return 0
	}
	st := sh.Limits.State(p)
	var due []lease.Lease
	for l := range st.Leases().DropExpired(nowNS) {
		last = max(last, l.ExpiryNS)
		if due = append(due, l); len(due) == mostExpired {
			sh.giveBack(e, p, due, nowNS)
			due = due[:0]
		}
	}
	p.SetState(&st)
	sh.giveBack(e, p, due, nowNS)
	sh.DropIfEmpty(e, p)
	return last
}

// mostExpired is how many leases are given back at a time: 288 KB of them. Only a warm-up heeds their order, and only among these.
const mostExpired = 4096

// giveBack gives what a companion's leases held back to its limit, if that is there.
func (sh *Shard) giveBack(e *table.Slot, p *table.LimitEntry, from []lease.Lease, nowNS int64) {
	base := sh.BaseOf(e, p)
	if base == nil || len(from) == 0 {
		return
	}
	l, companion, st := sh.Limits.Limit(base), p.Shape(), sh.Limits.State(base)
	if l.Aligned() {
		for i := range from {
			from[i].TakenNS = cell.ShiftInstant(from[i].TakenNS, sh.Wall.Load())
			from[i].ExpiryNS = cell.ShiftInstant(from[i].ExpiryNS, sh.Wall.Load())
		}
	}
	had := sh.Limits.Bytes(base)
	l.GiveBack(&st, sh.TimeOf(&l, nowNS), &companion, from)
	sh.Limits.Keep(base, &l, base.Code.Load(), &st)
	sh.room.Bytes.Add(sh.Limits.Bytes(base) - had) // a ring of one word, for large numbers, for which nobody has claimed room
	sh.Limits.Untell(base)
}

// DropIfEmpty removes a companion without leases, unless it is the last limit entry of its key.
func (sh *Shard) DropIfEmpty(e *table.Slot, p *table.LimitEntry) {
	st := sh.Limits.State(p)
	if st.Leases().Len() > 0 || st.BlockedNS != 0 {
		return
	}
	sh.RemoveLimits(e, func(of *table.LimitEntry) bool { return of == p })
	sh.untell(e) // where a log is only extended, the files would keep the limit entry
}

// leased reports whether a key has leases that have not ended. Such a key is not evicted.
func (sh *Shard) leased(e *table.Slot, nowNS int64) bool {
	for p := range sh.LimitsOf(e) {
		if p.HoldsLeases() && sh.EntryEndNS(p) > uint64(nowNS) {
			return true
		}
	}
	return false
}

// LinkedOf returns the keys that a lease leads to. found is false if there is no such lease, or it has ended.
func (sh *Shard) LinkedOf(e *table.Slot, id, nowNS int64) (names [][]byte, found bool) {
	for p := range sh.LimitsOf(e) {
		if p.HoldsLeases() {
			st := sh.Limits.State(p)
			links, has := st.Leases().Links(uint64(id), nowNS)
			keys, _ := lease.NamesIn(links)
			names, found = append(names, keys...), found || has
		}
	}
	return names, found
}

// FindLease looks for a lease that has not ended in a limit entry.
func (sh *Shard) FindLease(p *table.LimitEntry, id, nowNS int64) (st cell.State, l lease.Lease, found bool) {
	if p.HoldsLeases() {
		st = sh.Limits.State(p)
		l, found = st.Leases().Find(uint64(id), nowNS)
	}
	return st, l, found
}

// DropLease ends the leases of an ID in a limit entry, and gives back what they hold beyond their true cost.
func (sh *Shard) DropLease(e *table.Slot, p *table.LimitEntry, id, nowNS int64, cost func(*lease.Lease) int64) {
	for {
		st := sh.Limits.State(p)
		l, found := st.Leases().Drop(uint64(id), nowNS)
		if !found {
			return
		}
		p.SetState(&st)
		if back := l.Cost - cost(&l); back > 0 && p.Code.Load()&cell.CodeOfLeases != 0 {
			l.Cost = back
			sh.giveBack(e, p, []lease.Lease{l}, nowNS)
		}
	}
}
