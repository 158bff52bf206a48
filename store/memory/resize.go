package memory

import (
	"celld/store/memory/table"
	"math"
	"sync"
)

// resize holds the limits that were asked for; room has those in force.
type resize struct {
	*shards
	mu                sync.Mutex
	maxKeys, maxBytes int64
}

// SetLimits changes Options.MaxKeys, MaxBytes and NoEviction at one instant. maxKeys is positive, maxBytes is not negative. From then on
// the store does not grow above them: no key comes unless another goes. Those that are above them go when Shrink is called, and without
// noEviction only. Where eviction begins together with larger limits, nobody is evicted by the old ones. Where it ends together
// with smaller ones, nobody is evicted by these. The number of shards stays as it was.
func (s *resize) SetLimits(maxKeys, maxBytes int64, noEviction bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxKeys, s.maxBytes = maxKeys, maxBytes
	if !noEviction {
		s.room.maxKeys.Store(max(s.room.maxKeys.Load(), maxKeys))
		if bytes := s.room.maxBytes.Load(); maxBytes == 0 || bytes > 0 && bytes < maxBytes {
			s.room.maxBytes.Store(maxBytes)
		}
	}
	s.room.noEviction.Store(noEviction)
	s.lower(0)
	s.setNote()
}

// Shrink does one step of removing what the last SetLimits has no room for: some 64 keys, in 0.1 ms. It reports whether there is more to
// remove.
func (s *resize) Shrink() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shrinks() && !s.room.over() {
		return false
	}
	s.lower(perLock)
	steps := s.trim(s.latestNS())
	if steps == 0 && s.room.over() { // keys that are pinned go later
		s.room.maxKeys.Store(s.maxKeys)
		s.room.maxBytes.Store(s.maxBytes)
	}
	s.setNote()
	return s.shrinks() || steps == perLock && s.room.over()
}

// MaxBytes is how many bytes keys may hold now: while Shrink has more to remove, it is above that of SetLimits; 0: any number.
func (s *resize) MaxBytes() int64 { return s.room.maxBytes.Load() }

// shrinks reports whether the limits in force are still above the wanted ones. s.mu is locked.
func (s *resize) shrinks() bool {
	return s.room.maxKeys.Load() != s.maxKeys || s.room.maxBytes.Load() != s.maxBytes
}

// lower brings the limits in force to the wanted ones, or down to so many keys less than are held: a single insert has to evict all that is
// above them.
func (s *resize) lower(by int64) {
	keys, bytes := s.maxKeys, s.maxBytes
	if !s.room.noEviction.Load() {
		keys = max(keys, s.room.keys.Load()-by)
		if bytes > 0 {
			bytes = max(bytes, s.room.bytes.Load()-by*table.OverheadBytes)
		}
	}
	s.room.maxKeys.Store(keys)
	s.room.maxBytes.Store(bytes)
}

// setNote has small stores note more uses of keys.
func (s *resize) setNote() {
	keys := s.room.mostKeys()
	noteNS := min(keys, noteMost/noteOfKey) * noteOfKey
	if keys <= exactKeys {
		noteNS = math.MinInt64
	}
	for i := range s.all {
		s.all[i].noteNS.Store(noteNS)
	}
}

// init sets the first limits of an empty store.
func (s *resize) init(maxKeys, maxBytes int64, noEviction bool) {
	s.room.maxKeys.Store(maxKeys)
	s.room.maxBytes.Store(maxBytes)
	s.SetLimits(maxKeys, maxBytes, noEviction)
}
