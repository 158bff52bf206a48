package shard

import (
	"sync"
	"sync/atomic"

	"celld/store/memory/table"
)

// Sweeper removes what is over. It also purges the states of policies that were deleted or reset. These may lie under any number of keys,
// so they are not removed at once. A look-up purges the key that it finds, and Sweep walks through the table once for the others. A key
// that held nothing else is then gone.
//
// Take does not purge: it would have to look up the policy of each state, under a lock, and it reads only the states that it asks for.
type Sweeper struct {
	*Shards
	sweeps atomic.Uint32 // rotates the shard that Sweep starts with

	walked atomic.Uint64 // the LimitsRemoved up to which all states are purged

	mu      sync.Mutex // held for a step of the walk
	walking uint64     // the LimitsRemoved that the present walk is for; 0: there is none
	shard   int
	slot    uint32
}

// emptyPerPlace is how many free slots count as much as one place that is looked at.
const emptyPerPlace = 16

// Sweep does one step of removing dead keys, under one short lock: it looks at 64 keys at most and removes those that are dead. It reports
// whether there may be more. Call it every 100 ms or so until there are none: then the live keys alone take memory, and calls that must
// first remove dead keys (Len, Random, inserts at capacity) find few.
//
// It also removes rules that are over, and evicts up to 64 keys above a capacity that was lowered.
func (s *Sweeper) Sweep(nowNS int64) (more bool) {
	if s.purgeSome(nowNS) {
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
	if s.Room.over() || s.RulesDue(nowNS) || s.purgeDue() {
		return true
	}
	for i := range s.All {
		if s.All[i].NextEndNS.Load() <= uint64(nowNS) {
			return true
		}
	}
	return false
}

// purgeSome purges some keys, under one short lock, and reports whether there was something to do.
func (s *Sweeper) purgeSome(nowNS int64) bool {
	if !s.purgeDue() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if count := s.LimitsRemoved(); s.walking != count { // states of what has gone since may lie behind
		s.walking, s.shard, s.slot = count, 0, 0
	}
	sh := &s.All[s.shard]
	sh.Lock(nowNS)
	left := PerLock * emptyPerPlace
	for range PerLock {
		if s.slot, left = sh.Slabs.Next(s.slot, left); left == 0 {
			break
		}
		sh.purge(s.slot, sh.Slabs.At(s.slot), nowNS)
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

// purgeDue reports whether there is a walk to do.
func (s *Sweeper) purgeDue() bool { return s.walked.Load() != s.LimitsRemoved() }

// sweep removes up to most dead slots in at most PerLock steps. Each step removes one, or sorts one anew that only seemed to be dead.
func (sh *Shard) sweep(nowNS int64, most int) (removed int) {
	defer sh.publish()
	if sh.Wheel.Late != table.NoSlot && sh.Wheel.LateNS <= uint64(nowNS) {
		removed = sh.sweepLate(nowNS, most)
	}
	for steps := removed; steps < PerLock && removed < most && sh.Wheel.NextNS() <= uint64(nowNS); steps++ {
		n := sh.Wheel.Open()
		e := sh.Slabs.At(n)
		if end := sh.EndNS(n, e); end > uint64(nowNS) {
			sh.Wheel.Move(&sh.Slabs, n, e, end)
		} else {
			sh.expire(n, e)
			removed++
		}
	}
	return removed
}

// sweepLate is sweep for the slots that the wheel had passed when they were put. They are few: those that callers insert whose clock is
// behind another's.
func (sh *Shard) sweepLate(nowNS int64, most int) (removed int) {
	earliestNS := uint64(table.Never)
	for n := sh.Wheel.Late; n != table.NoSlot; {
		e := sh.Slabs.At(n)
		next, end := e.NextInBucket(), sh.EndNS(n, e)
		switch {
		case end <= uint64(nowNS) && removed < most:
			sh.expire(n, e)
			removed++
		case end > uint64(nowNS) && end >= sh.Wheel.NowNS:
			sh.Wheel.Move(&sh.Slabs, n, e, end)
		default:
			earliestNS = min(earliestNS, end)
		}
		n = next
	}
	sh.Wheel.LateNS = earliestNS
	return removed
}
