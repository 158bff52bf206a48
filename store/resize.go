package store

import (
	"math"
	"sync"
)

// resize holds the limits that were asked for; room has those in force.
type resize struct {
	sync.Mutex
	maxKeys, maxBytes int64
}

// SetLimits changes Options.MaxKeys, MaxBytes and NoEviction at one instant. maxKeys is positive, maxBytes is not negative. When it
// returns, no more is held; keys that had to go went in steps with short locks, and without noEviction only. Where eviction begins
// together with larger limits, nobody is evicted by the old ones. Where it ends together with smaller ones, nobody is evicted by
// these. Not being given the time, it takes the latest that any call has given. The number of shards stays as it was.
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
	s.applyLimits()
	s.setNote()
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

// applyLimits brings the limits in force to the wanted ones. It lowers them by some 64 keys at a time, as a single
// insert has to evict all that is above them.
func (s *Store) applyLimits() {
	nowNS := s.latestNS()
	for {
		keys, bytes := s.resize.maxKeys, s.resize.maxBytes
		if !s.room.noEviction.Load() {
			keys = max(keys, s.room.keys.Load()-perLock)
			if bytes > 0 {
				bytes = max(bytes, s.room.bytes.Load()-perLock*OverheadBytes)
			}
		}
		s.room.maxKeys.Store(keys)
		s.room.maxBytes.Store(bytes)
		if !s.trim(nowNS) { // keys that are pinned go later
			s.room.maxKeys.Store(s.resize.maxKeys)
			s.room.maxBytes.Store(s.resize.maxBytes)
			return
		}
		if keys == s.resize.maxKeys && bytes == s.resize.maxBytes {
			return
		}
	}
}

// trim evicts, one short lock after the other, until the limits in force hold. It returns false when it meets only keys that are
// pinned.
func (s *Store) trim(nowNS int64) (done bool) {
	for s.room.over() {
		sh, v := s.chooseVictim(s.fullest(), need{}, nowNS)
		if v == noVictim || s.room.noEviction.Load() {
			return true
		}
		if v == oldestVictim {
			if !s.evictAny(sh, nowNS) {
				return false
			}
			continue
		}
		if v == oldestVictim {
			if !s.evictAny(sh, nowNS) {
				return
			}
			continue
		}
		sh.lock(nowNS)
		sh.take(v, nowNS)
		sh.unlock()
	}
	return true
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
