package shard

import (
	"iter"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

// policyID is 0 for a literal.
func policyID(l *store.LimitState) uint32 {
	if l.Policy == nil {
		return 0
	}
	return l.Policy.ID
}

// RemoveLimits removes the limit entries for which is returns true, but never the last of a key. It returns how many are left.
func (sh *Shard) RemoveLimits(e *table.Slot, is func(*table.LimitEntry) bool) (left int) {
	t := &sh.Limits
	var before *table.LimitEntry
	for n := e.FirstLimit(); n != 0; {
		p, number := t.At(n), n
		n = p.Next.Load()
		if !is(p) || before == nil && n == 0 {
			before = p
			left++
			continue
		}
		if before != nil {
			before.Next.Store(n)
		} else {
			t.At(n).TouchedNS.Store(p.TouchedNS.Load())
			e.SetFirstLimit(n)
		}
		sh.ReleaseBytes(t.Bytes(p))
		t.Free(number)
	}
	return left
}

// limits returns the limits of a key, without those of policies that are gone. The rings are the store's own, and valid under the shard's
// lock only.
func (sh *Shard) limits(e *table.Slot) (to store.Limits) {
	for p := range sh.LimitsOf(e) {
		of, gone := sh.PolicyOf(p)
		if gone {
			continue
		}
		to = append(to, store.LimitState{Policy: of, Limit: sh.LimitOf(p, of), State: sh.Limits.State(p)})
	}
	return to
}

// full is the state of a slot with its limits, which are valid under the lock. Limits of policies that are gone are left out, and
// do not count for the TAT.
func (sh *Shard) full(n uint32, e *table.Slot) store.Value {
	st := sh.State(n, e)
	if st.HoldsLimits {
		limits := sh.limits(e)
		st.TAT, st.Limits = sh.EndOf(limits), &limits
	}
	return st
}

// setLimits makes a key hold these limits and no others. Their rings become the store's.
func (sh *Shard) setLimits(e *table.Slot, limits store.Limits) {
	sh.DropLimits(e)
	for i := len(limits) - 1; i >= 0; i-- {
		l := &limits[i]
		sh.Limits.Keep(sh.AddLimit(e, &l.Limit, policyID(l)), &l.Limit, l.Limit.Code(), &l.State)
	}
}

// tell sets Told in the limits of a key, and notes that their logs have been told. If one log must be told as a whole, all are: its part
// in a copy can be removed only together with the key.
func (sh *Shard) tell(e *table.Slot, limits store.Limits) {
	known := true
	for l, r := range sh.rings(e, limits) {
		if l.Limit.KeepsCalls() {
			l.Told = r.Told
			known = known && r.Told.Known()
		}
	}
	for l, r := range sh.rings(e, limits) {
		if !known {
			l.Told = cell.Told{}
		}
		r.Told = l.Limit.Tell(&l.State, l.Told)
	}
}

// rings yields what limits has returned for a key, each with its ring, or with an unused one.
func (sh *Shard) rings(e *table.Slot, limits store.Limits) iter.Seq2[*store.LimitState, *table.Ring] {
	return func(yield func(*store.LimitState, *table.Ring) bool) {
		none := &table.Ring{}
		for p := range sh.LimitsOf(e) {
			if len(limits) == 0 {
				return
			}
			l, r := &limits[0], none
			if !sh.Limits.Is(p, &l.Limit, policyID(l), l.Limit.Code()) {
				continue // of a policy that is gone
			}
			if n := p.Ring.Load(); n != 0 {
				r = sh.Limits.Rings.At(n)
			}
			if !yield(l, r) {
				return
			}
			limits = limits[1:]
		}
	}
}

// untell marks all of a key's logs, which are told anew.
func (sh *Shard) untell(e *table.Slot) {
	for p := range sh.LimitsOf(e) {
		sh.Limits.Untell(p)
	}
}

// needsPurge reports whether a key holds limits of a policy that is gone. Until the first policy goes, it costs one comparison.
func (sh *Shard) needsPurge(e *table.Slot) bool {
	if e.Settle(); !e.HoldsLimits() || sh.policies.LimitsRemoved() == 0 {
		return false
	}
	for p := range sh.LimitsOf(e) {
		if sh.PolicyGone(p) {
			return true
		}
	}
	return false
}

// PolicyOf is the policy's limit that a limit entry is of; nil: a literal, or it is gone.
func (sh *Shard) PolicyOf(p *table.LimitEntry) (l *policy.Limit, gone bool) {
	id := p.PolicyID()
	if id == 0 {
		return nil, false
	}
	l = sh.policies.LimitOf(id)
	return l, l == nil
}

// LimitOf is the limit that has left a limit entry's state, under the policy's limit that the entry is of; nil: a literal.
func (sh *Shard) LimitOf(p *table.LimitEntry, of *policy.Limit) cell.Limit {
	l := sh.Limits.Limit(p)
	if of != nil {
		l.Name = of.Limit.Name
	}
	return l
}

// NameOf is the name of the limit that a limit entry is of.
func (sh *Shard) NameOf(p *table.LimitEntry) cell.Name {
	of, _ := sh.PolicyOf(p)
	l := sh.LimitOf(p, of)
	return l.Name
}

// PolicyGone reports whether a limit entry is of a policy that is gone, or of a limit that its policy has no more.
func (sh *Shard) PolicyGone(p *table.LimitEntry) bool {
	_, gone := sh.PolicyOf(p)
	return gone
}

// purge removes the limits of policies that are gone from a key, and reports whether the key is still there.
func (sh *Shard) purge(n uint32, e *table.Slot, nowNS int64) bool {
	if !sh.needsPurge(e) {
		return true
	}
	sh.RemoveLimits(e, sh.PolicyGone)
	end := sh.LimitsEndNS(e)
	if sh.PolicyGone(sh.Limits.At(e.FirstLimit())) || end <= uint64(nowNS) {
		sh.Remove(n, e)
		return false
	}
	sh.untell(e)
	var scratch [table.HugeKey]byte
	sh.MoveEnd(n, e, end, sh.Keys.View(e, &scratch))
	return true
}
