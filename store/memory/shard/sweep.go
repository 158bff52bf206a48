package shard

import (
	"sync"
	"sync/atomic"

	"celld/store/memory/table"
)

// Sweeper removes what is over. Its walk removes the states of policies that were deleted or reset. These states may lie under any number
// of keys, so they are not removed at once. A look-up of a key removes its own, and Sweep walks through the table once for the others. A
// key that held nothing else is then gone.
//
// Take does not look for them: it would have to ask for the policy of each state, under a lock, and it reads only the states
// that it asks for.
type Sweeper struct {
	*Shards
	sweeps atomic.Uint32 // rotates the shard that Sweep starts with

	walked atomic.Uint64 // the PoliciesLost up to which the walk has removed all states

	mu      sync.Mutex // held for a step of the walk
	walking uint64     // the PoliciesLost that the present walk is for; 0: there is none
	shard   int
	slot    uint32
}

// emptyPerPlace is how many free slots count as much as one place that is looked at.
const emptyPerPlace = 16

// Sweep does one step of removing dead keys, under one short lock: it handles 64 keys at most, of which it removes those
// that are dead. It reports whether there are more that may be. Call it every 100 ms or so until there are none: memory is
// then that of the live keys, and the calls that must first get rid of dead ones (Len, Random, inserts at capacity) find few.
//
// It also removes rules that are over, and evicts what is above a limit that was lowered, 64 keys at most.
func (s *Sweeper) Sweep(nowNS int64) (more bool) {
	if s.pruneSome(nowNS) {
		return true
	}
	s.SweepRules(nowNS)
	if s.trim(nowNS) == PerLock {
		return true
	}
	start := int(s.sweeps.Add(1))
	for i := range s.All {
		sh := &s.All[(start+i)&(len(s.All)-1)]
		if sh.NextEndNS.Load() <= uint64(nowNS) {
			sh.Lock(nowNS)
			sh.sweep(nowNS, PerLock)
			sh.Unlock()
			return s.SweepDue(nowNS)
		}
	}
	return false
}

// SweepDue says, without any lock, whether Sweep may have something to do.
func (s *Sweeper) SweepDue(nowNS int64) bool {
	if s.Room.over() || s.RulesDue(nowNS) || s.lossesDue() {
		return true
	}
	for i := range s.All {
		if s.All[i].NextEndNS.Load() <= uint64(nowNS) {
			return true
		}
	}
	return false
}

// pruneSome does a step of the walk, under one short lock, and reports whether there was one to do.
func (s *Sweeper) pruneSome(nowNS int64) bool {
	if !s.lossesDue() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if count := s.PoliciesLost(); s.walking != count { // what has gone since may lie behind
		s.walking, s.shard, s.slot = count, 0, 0
	}
	sh := &s.All[s.shard]
	sh.Lock(nowNS)
	left := PerLock * emptyPerPlace
	for range PerLock {
		if s.slot, left = sh.Slabs.Next(s.slot, left); left == 0 {
			break
		}
		sh.prune(s.slot, sh.Slabs.At(s.slot), nowNS)
		s.slot++
	}
	end := s.slot >= sh.Slabs.Top
	sh.Unlock()
	if end {
		s.shard, s.slot = s.shard+1, 0
	}
	if s.shard == len(s.All) {
		s.walked.Store(s.walking)
		s.walking = 0 // the next one starts anew
	}
	return true
}

// lossesDue reports whether there is a walk to do.
func (s *Sweeper) lossesDue() bool { return s.walked.Load() != s.PoliciesLost() }

// sweep removes up to most dead slots in at most perLock steps, each of which removes one or sorts one anew that only
// seemed to be dead.
func (sh *Shard) sweep(nowNS int64, most int) (removed int) {
	defer sh.publish()
	if sh.Ends.Late != table.NoSlot && sh.Ends.LateNS <= uint64(nowNS) {
		removed = sh.sweepLate(nowNS, most)
	}
	for steps := removed; steps < PerLock && removed < most && sh.Ends.NextNS() <= uint64(nowNS); steps++ {
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
func (sh *Shard) sweepLate(nowNS int64, most int) (removed int) {
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
