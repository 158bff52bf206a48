package memory

import (
	"iter"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// policyID is 0 for a literal.
func policyID(l *store.LimitState) uint32 {
	if l.Policy == nil {
		return 0
	}
	return l.Policy.ID
}

func (e *slot) holdsLimits() bool { return e.has(flagLimits) }

// firstTally is the number of the first of a key that holds limits.
func (e *slot) firstTally() uint32 { return uint32(e.info.Load()) }

// talliesOf yields the tallies of a key, none of one that holds no limits. They must not change meanwhile.
func (t *table) talliesOf(e *slot) iter.Seq[*tally] {
	return func(yield func(*tally) bool) {
		if !e.holdsLimits() {
			return
		}
		for n := e.firstTally(); n != 0; {
			p := t.tallies.at(n)
			if n = p.next.Load(); !yield(p) {
				return
			}
		}
	}
}

func (t *table) setTouched(e *slot, nowNS int64) {
	if e.holdsLimits() {
		t.tallies.at(e.firstTally()).touchedNS.Store(nowNS)
	} else {
		e.setInfo(touchedMask, uint64(nowNS)>>touchedUnit)
	}
}

func (t *table) touchedNS(e *slot) int64 {
	if e.holdsLimits() {
		return t.tallies.at(e.firstTally()).touchedNS.Load()
	}
	return int64(e.info.Load() & touchedMask << touchedUnit)
}

// addTally puts a new tally before the others of a key.
func (t *table) addTally(e *slot, policy uint32) *tally {
	n, p := t.tallies.take()
	p.policy.Store(policy)
	p.touchedNS.Store(t.touchedNS(e))
	next := uint32(0)
	if e.holdsLimits() {
		next = e.firstTally()
	}
	p.next.Store(next)
	e.setInfo(flagLimits|touchedMask, flagLimits|uint64(n))
	return p
}

// dropTallies removes all limits of a key. It keeps the time of its last use.
func (t *table) dropTallies(e *slot) {
	if !e.holdsLimits() {
		return
	}
	touched := t.touchedNS(e)
	for n := e.firstTally(); n != 0; {
		next := t.tallies.at(n).next.Load()
		t.tallies.put(n)
		n = next
	}
	e.setInfo(flagLimits|touchedMask, uint64(touched)>>touchedUnit)
}

func (t *table) findTally(e *slot, l *cell.Limit, policy, shape uint32) *tally {
	for p := range t.talliesOf(e) {
		if p.is(l, policy, shape) {
			return p
		}
	}
	return nil
}

func (t *table) countTallies(e *slot) (count int) {
	for range t.talliesOf(e) {
		count++
	}
	return count
}

// dropDeadTallies removes those but the first that have nothing left to remember, or whose policy is gone, and returns how
// many are left.
func (sh *shard) dropDeadTallies(e *slot, nowNS int64) (left int) {
	t := &sh.tallies
	before := t.at(e.firstTally())
	left = 1
	for n := before.next.Load(); n != 0; {
		p := t.at(n)
		next := p.next.Load()
		if sh.tallyEndNS(p) <= uint64(nowNS) || sh.lost(p) {
			sh.releaseBytes(t.bytes(p))
			before.next.Store(next)
			t.put(n)
		} else {
			before = p
			left++
		}
		n = next
	}
	return left
}

// limitBytes is what the limits of a key take, by the estimate of MaxBytes.
func (t *table) limitBytes(e *slot) (bytes int64) {
	for p := range t.talliesOf(e) {
		bytes += t.tallies.bytes(p)
	}
	return bytes
}

// limitsEndNS is when the last limit of a key has nothing left to remember.
func (t *table) limitsEndNS(e *slot) (end uint64) {
	for p := range t.talliesOf(e) {
		end = max(end, t.tallyEndNS(p))
	}
	return end
}

// tallyEndNS is when a tally has nothing left to remember.
func (t *table) tallyEndNS(p *tally) uint64 {
	l, st := cell.Limit{Shape: p.shape()}, t.tallies.state(p) // all that an end needs; literal would divide
	return t.limitEndNS(&l, &st)
}

// costBytes is what a key takes with its limits, by the estimate of MaxBytes.
func (t *table) costBytes(n uint32, e *slot) int64 {
	return costBytes(t.keys.length(n, e)) + t.limitBytes(e)
}

// limits are what a key holds, without those of policies that are gone. The rings are the store's own, and valid under the
// shard's lock only.
func (sh *shard) limits(e *slot) (to store.Limits) {
	for p := range sh.talliesOf(e) {
		var policy *policy.Policy
		if id := p.policy.Load(); id != 0 {
			if policy = sh.policies.PolicyOf(id); policy == nil { // deleted, or reset
				continue
			}
		}
		to = append(to, store.LimitState{Policy: policy, Limit: p.limit(), State: sh.tallies.state(p)})
	}
	return to
}

// bytes is what they take, by the estimate of MaxBytes.
func bytesOfLimits(l store.Limits) (n int64) {
	for i := range l {
		n += TallyBytes + bytesOfRing(l[i].State.Ring)
	}
	return n
}

// full is the state of a slot with its limits, which are valid under the lock. Limits of policies that are gone are left out, and
// do not count for the TAT.
func (sh *shard) full(n uint32, e *slot) store.Value {
	st := sh.state(n, e)
	if st.Kind == store.HoldsLimits {
		limits := sh.limits(e)
		st.TAT, st.Limits = sh.endOf(limits), &limits
	}
	return st
}

// endNS is when the last of limits that are in limit time has nothing left to remember, in limit time.
func endNS(l store.Limits, aheadNS int64) (end uint64) {
	for i := range l {
		end = max(end, limitEndNS(&l[i].Limit, &l[i].State, aheadNS))
	}
	return end
}

// endOf is when the last of limits has nothing left to remember.
func (t *table) endOf(limits store.Limits) (end uint64) { return endNS(limits, t.wall.Load()) }

// limitBytes is what the limits of a state take, by the estimate of MaxBytes.
func limitBytes(st store.Value) int64 {
	if st.Limits == nil {
		return 0
	}
	return bytesOfLimits(*st.Limits)
}

// setLimits makes a key hold these limits and no others. Their rings become the store's.
func (sh *shard) setLimits(e *slot, limits store.Limits) {
	sh.dropTallies(e)
	for i := len(limits) - 1; i >= 0; i-- {
		l := &limits[i]
		sh.tallies.keep(sh.addTally(e, policyID(l)), &l.Limit, l.Limit.Code(), &l.State)
	}
}

// tell sets Told in the limits of a key, and notes that their logs have been told. When one log must be told as a whole, all are:
// what a copy has of that log can be removed only with the key.
func (sh *shard) tell(e *slot, limits store.Limits) {
	known := true
	for l, r := range sh.rings(e, limits) {
		if l.Limit.KeepsCalls() {
			l.Told = r.told
			known = known && r.told.Known()
		}
	}
	for l, r := range sh.rings(e, limits) {
		if !known {
			l.Told = cell.Told{}
		}
		r.told = l.Limit.Tell(&l.State, l.Told)
	}
}

// rings yields the limits of a key, as limits has made them, with their rings, and an unused one for those that have none.
func (sh *shard) rings(e *slot, limits store.Limits) iter.Seq2[*store.LimitState, *ring] {
	return func(yield func(*store.LimitState, *ring) bool) {
		none := &ring{}
		for p := range sh.talliesOf(e) {
			if len(limits) == 0 {
				return
			}
			l, r := &limits[0], none
			if !p.is(&l.Limit, policyID(l), l.Limit.Code()) {
				continue // of a policy that is gone
			}
			if n := p.ring.Load(); n != 0 {
				r = &sh.tallies.rings[n]
			}
			if !yield(l, r) {
				return
			}
			limits = limits[1:]
		}
	}
}

// untell has all of a key's logs told anew.
func (sh *shard) untell(e *slot) {
	for p := range sh.talliesOf(e) {
		sh.tallies.untell(p)
	}
}

// Limits calls fn for each limit of a live key that holds limits, and touches it. The state is valid until fn returns,
// which must not use the store. It returns false where there is no such key; the error is ErrWrongType.
func (s *Store) Limits(key []byte, a store.Access, fn func(*store.LimitState)) (bool, error) {
	sh, _, e := s.lockKey(key, a)
	defer sh.unlock()
	sh.countLookup(e)
	switch {
	case e == nil:
		return false, nil
	case !e.holdsLimits():
		return true, store.ErrWrongType
	}
	limits := sh.limits(e)
	for i := range limits {
		l := &limits[i]
		if sh.limitEndNS(&l.Limit, &l.State) <= uint64(a.NowNS) {
			continue
		}
		if ahead := s.wall.Load(); ahead != 0 {
			l.State.Ring = cloneRing(l.State.Ring)
			stateToWall(l, ahead)
		}
		fn(l)
	}
	return true, nil
}
