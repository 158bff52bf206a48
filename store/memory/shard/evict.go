package shard

import (
	"hash/maphash"
	"runtime"

	"celld/store/memory/table"
)

// victim says which kind of key gives its room, in the order in which they go.
type victim int

const (
	noVictim     victim = iota
	deadVictim          // one that has expired, wherever it is
	oldestVictim        // the last of the segmented LRU: a live key is forgotten
)

// claim takes the room for what will be put into sh, which is locked, and removes other keys for it if it must. For a victim in
// another shard, or for many victims, it unlocks sh in between. Then again is true, nothing is claimed, and the caller must look up
// its key again. A caller whose key was there must do so in any case: the key may have been a victim.
func (s *Shards) claim(sh *Shard, n Need, nowNS int64) (again bool, err error) {
	var from *Shard
	var v victim
	stuck := false // sh has no such victim
	for range PerLock {
		never := s.Room.NoEviction.Load()
		if s.Room.claim(n) {
			return false, nil
		}
		if s.Room.tooLarge(n) {
			return false, s.Room.refuse(n)
		}
		from, v = s.chooseVictim(sh, nowNS)
		if never && !s.Room.NoEviction.Load() { // SetCapacity may have raised it before: claim by that
			continue
		}
		if v == noVictim && s.Room.NoEviction.Load() {
			return false, s.Room.refuse(n)
		}
		if stuck = from != sh || !sh.removeVictim(v, nowNS); stuck {
			break
		}
	}
	sh.Unlock()
	switch {
	case v == noVictim: // all that is held is claimed by calls that are just about to link their keys
		runtime.Gosched()
	case stuck && v == oldestVictim:
		if !s.evictAny(from, nowNS) {
			err = s.Room.refuse(n)
		}
	case from != sh:
		from.Lock(nowNS)
		from.removeVictim(v, nowNS)
		from.Unlock()
	}
	sh.Lock(nowNS)
	return err == nil, err
}

// evictAny evicts the oldest key of a shard or, if that must stay, of another. It returns false where
// all that it has looked at must stay.
func (s *Shards) evictAny(from *Shard, nowNS int64) bool {
	pinned := false
	for i := range len(s.All) + 1 {
		sh := from
		if i > 0 {
			sh = &s.All[i-1]
		}
		if sh.Held.Load() == 0 {
			continue
		}
		sh.Lock(nowNS)
		gone := sh.removeVictim(oldestVictim, nowNS)
		pinned = pinned || sh.Held.Load() > 0
		sh.Unlock()
		if gone {
			return true
		}
	}
	return !pinned
}

// chooseVictim looks for a key to remove, by what the shards publish and without any lock. It prefers one of own.
func (s *Shards) chooseVictim(own *Shard, nowNS int64) (*Shard, victim) {
	if sh := s.prefer(own, func(sh *Shard) bool { return sh.NextEndNS.Load() <= uint64(nowNS) }); sh != nil {
		return sh, deadVictim
	}
	if s.Room.NoEviction.Load() {
		return nil, noVictim
	}
	if own.Held.Load() > 0 {
		return own, oldestVictim
	}
	if sh := s.fullest(); sh.Held.Load() > 0 {
		return sh, oldestVictim
	}
	return nil, noVictim
}

// trim evicts, one short lock after the other, until the store is within its capacity or 64 steps are done. A step that meets a key whose
// end was put off since it was sorted removes none. trim stops when it meets only pinned keys.
func (s *Shards) trim(nowNS int64) (steps int) {
	for ; steps < PerLock && s.Room.over(); steps++ {
		sh, v := s.chooseVictim(s.fullest(), nowNS)
		if v == noVictim || s.Room.NoEviction.Load() || v == oldestVictim && !s.evictAny(sh, nowNS) {
			break
		}
		if v != oldestVictim {
			sh.Lock(nowNS)
			sh.removeVictim(v, nowNS)
			sh.Unlock()
		}
	}
	return steps
}

// prefer returns own if it is ok, else another shard that is, or nil.
func (s *Shards) prefer(own *Shard, ok func(*Shard) bool) *Shard {
	if ok(own) {
		return own
	}
	for i := range s.All {
		if ok(&s.All[i]) {
			return &s.All[i]
		}
	}
	return nil
}

func (s *Shards) fullest() *Shard {
	most := &s.All[0]
	for i := range s.All {
		if s.All[i].Held.Load() > most.Held.Load() {
			most = &s.All[i]
		}
	}
	return most
}

// removeVictim removes a key of that kind and reports whether it found one; others may have been faster.
func (sh *Shard) removeVictim(v victim, nowNS int64) bool {
	if v == deadVictim {
		return sh.sweep(nowNS, 1) > 0
	}
	for range mostPinned {
		n := sh.Lists.Victim(&sh.Slabs)
		if n == table.NoSlot {
			return false
		}
		e := sh.Slabs.At(n)
		if !sh.pinned(e, nowNS) {
			sh.evict(n, e, nowNS)
			return true
		}
		name := e.List()
		sh.Lists.Pull(&sh.Slabs, e)
		sh.Lists.Push(&sh.Slabs, name, n, e)
	}
	return false
}

// mostPinned is how many keys that must stay an eviction passes by.
const mostPinned = 16

// pinned reports that a key must not be evicted: somebody waits for it, or relies on a lease.
func (sh *Shard) pinned(e *table.Slot, nowNS int64) bool {
	e.Settle()
	return e.Has(table.FlagWaited) || sh.leased(e, nowNS)
}

func (sh *Shard) evict(n uint32, e *table.Slot, nowNS int64) {
	if sh.Dead(n, e, nowNS) {
		sh.expire(n, e)
		return
	}
	sh.Counters.Evicted++
	sh.Remove(n, e)
	sh.touchVictim()
}

// touchVictim brings the line of the index that leads to the next victim into the caches: waiting for it took a fifth of an
// eviction. A load would not do, as the next atomic write waits for all loads before it.
func (sh *Shard) touchVictim() {
	n := sh.Lists.Of(table.Probation).Last
	if n == table.NoSlot {
		return
	}
	var scratch [table.HugeKey]byte
	tag := table.TagOfHash(maphash.Bytes(sh.seed, sh.Keys.View(sh.Slabs.At(n), &scratch)))
	sh.Index.Peek(tag).Prefetch(tag)
}
