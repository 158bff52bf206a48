package memory

import (
	"celld/store/memory/table"
	"sync"
	"sync/atomic"
)

// losses is the walk that removes the states of policies that were deleted or reset. These states may lie under any number of
// keys, so they are not removed at once. A look-up of a key removes its own, and Sweep walks through the table once for the
// others. A key that held nothing else is then gone.
//
// Take does not look for them: it would have to ask for the policy of each state, under a lock, and it reads only the states
// that it asks for.
type losses struct {
	walked atomic.Uint64 // the PoliciesLost up to which the walk has removed all states

	mu      sync.Mutex // held for a step of the walk
	walking uint64     // the PoliciesLost that the present walk is for; 0: there is none
	shard   int
	slot    uint32
}

// emptyPerPlace is how many free slots count as much as one place that is looked at.
const emptyPerPlace = 16

// gone reports whether a key holds limits of a policy that is gone. While none ever went, it costs one comparison.
func (sh *shard) gone(e *table.Slot) bool {
	if e.Settle(); !e.HoldsLimits() || sh.policies.PoliciesLost() == 0 {
		return false
	}
	for p := range sh.TalliesOf(e) {
		if sh.lost(p) {
			return true
		}
	}
	return false
}

// lost reports whether a tally is of a policy that is gone.
func (sh *shard) lost(p *table.Tally) bool {
	id := p.Policy.Load()
	return id != 0 && sh.policies.PolicyOf(id) == nil
}

// prune removes what a key holds of policies that are gone, and reports whether the key is still there.
func (sh *shard) prune(n uint32, e *table.Slot, nowNS int64) bool {
	if !sh.gone(e) {
		return true
	}
	limits := sh.limits(e)
	end := sh.EndOf(limits)
	if end <= uint64(nowNS) {
		sh.remove(n, e)
		return false
	}
	var scratch [table.HugeKey]byte
	key := sh.Keys.View(n, e, &scratch)
	before := sh.LimitBytes(e)
	sh.setLimits(e, limits)
	sh.releaseBytes(before - sh.LimitBytes(e))
	sh.moveEnd(n, e, end, key)
	return true
}

// pruneSome does a step of the walk, under one short lock, and reports whether there was one to do.
func (s *Store) pruneSome(nowNS int64) bool {
	l := &s.losses
	if !s.lossesDue() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if count := s.PoliciesLost(); l.walking != count { // what has gone since may lie behind
		l.walking, l.shard, l.slot = count, 0, 0
	}
	sh := &s.shards[l.shard]
	sh.lock(nowNS)
	left := perLock * emptyPerPlace
	for range perLock {
		if l.slot, left = sh.Slabs.Next(l.slot, left); left == 0 {
			break
		}
		sh.prune(l.slot, sh.Slabs.At(l.slot), nowNS)
		l.slot++
	}
	end := l.slot >= sh.Slabs.Top
	sh.unlock()
	if end {
		l.shard, l.slot = l.shard+1, 0
	}
	if l.shard == len(s.shards) {
		l.walked.Store(l.walking)
		l.walking = 0 // the next one starts anew
	}
	return true
}

// lossesDue reports whether there is a walk to do.
func (s *Store) lossesDue() bool { return s.losses.walked.Load() != s.PoliciesLost() }
