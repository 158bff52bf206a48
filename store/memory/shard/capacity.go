package shard

import (
	"math"
	"sync"

	"celld/store/memory/table"
)

// Capacity holds the wanted capacity; room holds the one in force.
type Capacity struct {
	*Shards
	Mu                  sync.Mutex
	WantKeys, WantBytes int64
}

// SetCapacity changes Options.MaxKeys, MaxBytes and NoEviction at one instant. maxKeys is positive, maxBytes is not negative. From then on
// the store does not grow above them: no key comes unless another goes. Keys above them go when Shrink is called, and only without
// noEviction. If eviction begins together with a larger capacity, nobody is evicted by the old one. If it ends together with a smaller one,
// nobody is evicted by that. The number of shards stays as it was.
func (s *Capacity) SetCapacity(maxKeys, maxBytes int64, noEviction bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.WantKeys, s.WantBytes = maxKeys, maxBytes
	if !noEviction {
		s.Room.maxKeys.Store(max(s.Room.maxKeys.Load(), maxKeys))
		if bytes := s.Room.maxBytes.Load(); maxBytes == 0 || bytes > 0 && bytes < maxBytes {
			s.Room.maxBytes.Store(maxBytes)
		}
	}
	s.Room.NoEviction.Store(noEviction)
	s.lower(0)
	s.setNote()
}

// Shrink does one step of removing what the last SetCapacity has no room for: some 64 keys, in 0.1 ms. It reports whether there is more to
// remove.
func (s *Capacity) Shrink() (more bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.shrinks() && !s.Room.over() {
		return false
	}
	s.lower(PerLock)
	steps := s.trim(s.latestNS())
	if steps == 0 && s.Room.over() { // keys that are pinned go later
		s.Room.maxKeys.Store(s.WantKeys)
		s.Room.maxBytes.Store(s.WantBytes)
	}
	s.setNote()
	return s.shrinks() || steps == PerLock && s.Room.over()
}

// MaxBytes is how many bytes keys may hold now: while Shrink has more to remove, it is above that of SetCapacity; 0: any number.
func (s *Capacity) MaxBytes() int64 { return s.Room.maxBytes.Load() }

// Refused is how many changes found no room, and for how many of them MaxKeys was the bound.
func (s *Capacity) Refused() (all, keys int64) {
	return s.Room.refused.Load(), s.Room.refusedKeys.Load()
}

// shrinks reports whether the limits in force are still above the wanted ones. s.mu is locked.
func (s *Capacity) shrinks() bool {
	return s.Room.maxKeys.Load() != s.WantKeys || s.Room.maxBytes.Load() != s.WantBytes
}

// lower brings the limits in force to the wanted ones, or down to so many keys less than are held: a single insert has to evict all that is
// above them.
func (s *Capacity) lower(by int64) {
	keys, bytes := s.WantKeys, s.WantBytes
	if !s.Room.NoEviction.Load() {
		keys = max(keys, s.Room.Keys.Load()-by)
		if bytes > 0 {
			bytes = max(bytes, s.Room.Bytes.Load()-by*table.OverheadBytes)
		}
	}
	s.Room.maxKeys.Store(keys)
	s.Room.maxBytes.Store(bytes)
}

// setNote sets how often uses of keys are noted: more often in small stores.
func (s *Capacity) setNote() {
	keys := s.Room.mostKeys()
	noteNS := min(keys, noteMost/noteOfKey) * noteOfKey
	if keys <= exactKeys {
		noteNS = math.MinInt64
	}
	for i := range s.All {
		s.All[i].noteNS.Store(noteNS)
	}
}

// Init sets the first limits of an empty store.
func (s *Capacity) Init(maxKeys, maxBytes int64, noEviction bool) {
	s.Room.maxKeys.Store(maxKeys)
	s.Room.maxBytes.Store(maxBytes)
	s.SetCapacity(maxKeys, maxBytes, noEviction)
}
