package store

import (
	"sync"
	"sync/atomic"
)

// What was used of a policy goes with it, when it is deleted or reset. Its states lie under any number of keys, so they are
// not looked for at once. Whoever looks up a key removes them first, and Sweep walks through the table once for the others.
// A key that held nothing else is then gone.
//
// A call of CL.TAKE does not look, as it would have to ask for each state's policy, under a lock: what it does not ask for
// it does not meet.
type losses struct {
	walked atomic.Uint64 // of policies that ever went, those whose states are gone from the whole table

	mu      sync.Mutex // held for a step of the walk
	walking uint64     // of them, those that the walk is for
	shard   int
	slot    uint32
}

// gone reports whether a key holds limits of a policy that is gone. It is quick where no policy ever went.
func (sh *shard) gone(e *slot) bool {
	if sh.policies.PoliciesLost() == 0 {
		return false
	}
	for p := range sh.talliesOf(e) {
		if p.policy != 0 && sh.policies.PolicyOf(p.policy) == nil {
			return true
		}
	}
	return false
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
	sh.mu.Unlock()
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
