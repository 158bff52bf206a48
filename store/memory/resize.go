package memory

import (
	"celld/store/memory/table"
	"math"
	"sync"
)

// resize holds the limits that were asked for; room has those in force.
type resize struct {
	sync.Mutex
	maxKeys, maxBytes int64
}

// SetLimits changes Options.MaxKeys, MaxBytes and NoEviction at one instant. maxKeys is positive, maxBytes is not negative. From then on
// the store does not grow above them: no key comes unless another goes. Those that are above them go when Shrink is called, and without
// noEviction only. Where eviction begins together with larger limits, nobody is evicted by the old ones. Where it ends together
// with smaller ones, nobody is evicted by these. The number of shards stays as it was.
func (s *Store) SetLimits(maxKeys, maxBytes int64, noEviction bool) {
	s.resize.Lock()
	defer s.resize.Unlock()
	s.resize.maxKeys, s.resize.maxBytes = maxKeys, maxBytes
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
func (s *Store) Shrink() (more bool) {
	s.resize.Lock()
	defer s.resize.Unlock()
	if !s.shrinks() && !s.room.over() {
		return false
	}
	s.lower(perLock)
	steps := s.trim(s.latestNS())
	if steps == 0 && s.room.over() { // keys that are pinned go later
		s.room.maxKeys.Store(s.resize.maxKeys)
		s.room.maxBytes.Store(s.resize.maxBytes)
	}
	s.setNote()
	return s.shrinks() || steps == perLock && s.room.over()
}

// MaxBytes is how many bytes keys may hold now: while Shrink has more to remove, it is above that of SetLimits; 0: any number.
func (s *Store) MaxBytes() int64 { return s.room.maxBytes.Load() }

// shrinks reports whether the limits in force are still above the wanted ones. s.resize is locked.
func (s *Store) shrinks() bool {
	return s.room.maxKeys.Load() != s.resize.maxKeys || s.room.maxBytes.Load() != s.resize.maxBytes
}

// lower brings the limits in force to the wanted ones, or down to so many keys less than are held: a single insert has to evict all that is
// above them.
func (s *Store) lower(by int64) {
	keys, bytes := s.resize.maxKeys, s.resize.maxBytes
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
func (s *Store) setNote() {
	keys := s.room.mostKeys()
	noteNS := min(keys, noteMost/noteOfKey) * noteOfKey
	if keys <= exactKeys {
		noteNS = math.MinInt64
	}
	for i := range s.shards {
		s.shards[i].noteNS.Store(noteNS)
	}
}

// trim evicts, one short lock after the other, until the limits in force hold or it has done 64 steps. A step that meets a key whose end
// was put off since it was sorted removes none. It stops when it meets only keys that are pinned.
func (s *Store) trim(nowNS int64) (steps int) {
	for ; steps < perLock && s.room.over(); steps++ {
		sh, v := s.chooseVictim(s.fullest(), need{}, nowNS)
		if v == noVictim || s.room.noEviction.Load() || v == oldestVictim && !s.evictAny(sh, nowNS) {
			break
		}
		if v != oldestVictim {
			sh.lock(nowNS)
			sh.take(v, nowNS)
			sh.unlock()
		}
	}
	return steps
}

func (s *Store) latestNS() int64 {
	var latest int64
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		latest = max(latest, sh.latestNS)
		sh.unlock()
	}
	return latest
}
