package memory

import (
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

// gone reports whether a key holds limits of a policy that is gone. While none ever went, it costs one comparison.
func (sh *shard) gone(e *slot) bool {
	if e.settle(); !e.holdsLimits() || sh.policies.PoliciesLost() == 0 {
		return false
	}
	for p := range sh.talliesOf(e) {
		if sh.lost(p) {
			return true
		}
	}
	return false
}

// lost reports whether a tally is of a policy that is gone.
func (sh *shard) lost(p *tally) bool {
	id := p.policy.Load()
	return id != 0 && sh.policies.PolicyOf(id) == nil
}

// prune removes what a key holds of policies that are gone, and reports whether the key is still there.
func (sh *shard) prune(n uint32, e *slot, nowNS int64) bool {
	if !sh.gone(e) {
		return true
	}
	limits := sh.limits(e)
	end := sh.endOf(limits)
	if end <= uint64(nowNS) {
		sh.remove(n, e)
		return false
	}
	var scratch [hugeKey]byte
	key := sh.keys.view(n, e, &scratch)
	before := sh.limitBytes(e)
	sh.setLimits(e, limits)
	sh.releaseBytes(before - sh.limitBytes(e))
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
		if l.slot, left = sh.slabs.next(l.slot, left); left == 0 {
			break
		}
		sh.prune(l.slot, sh.slabs.at(l.slot), nowNS)
		l.slot++
	}
	end := l.slot >= sh.slabs.top
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
