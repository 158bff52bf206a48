package store

import (
	"math"
	"math/rand/v2"
)

// A cursor is a shard in the bits from 32 up, and in the low 32 how many places at the bottom of its dense slice are
// still to visit, or topOfShard for all. It stays below 2^42, so that clients that hold numbers as float64 keep it.
const (
	shardShift = 32
	topOfShard = math.MaxUint32
)

// Scan calls fn for some of the live keys and returns the cursor to go on with. Cursor 0 starts; a returned 0 ends. It
// looks at count places (1 if less), and calls fn, with no lock held, for the live keys in them: count at most, or none
// though there are more. Any cursor is safe; one that Scan never returned may skip keys.
//
// A key that is there from the first call to the last is delivered at least once. A shard is walked from the top down,
// and a removal moves the slot at the top to a lower place: one that has not been visited stays among those that will
// be. One that has may be met again, so a key can be delivered more than once.
func (s *Store) Scan(cursor uint64, count int, nowNS int64, fn func(key string, st State)) (next uint64) {
	type item struct {
		key   string
		state State
	}
	count = max(count, 1)
	batch := make([]item, 0, min(count, perLock))
	if cursor == 0 {
		cursor = topOfShard
	}
	for index := cursor >> shardShift; index < uint64(len(s.shards)); index = cursor >> shardShift {
		sh := &s.shards[index]
		batch = batch[:0]
		sh.lock(nowNS)
		top := min(int(cursor&topOfShard), len(sh.dense))
		bottom := max(top-min(count, perLock), 0)
		for _, e := range sh.dense[bottom:top] {
			if !e.dead(nowNS) {
				batch = append(batch, item{e.key, e.state()})
			}
		}
		sh.mu.Unlock()
		for _, it := range batch {
			fn(it.key, it.state)
		}
		count -= top - bottom
		cursor = index<<shardShift | uint64(bottom)
		if bottom == 0 {
			cursor = (index+1)<<shardShift | topOfShard
		}
		if count <= 0 {
			break
		}
	}
	if cursor>>shardShift >= uint64(len(s.shards)) {
		return 0
	}
	return cursor
}

// Len returns the number of live keys. It removes the dead ones first, in steps with short locks.
func (s *Store) Len(nowNS int64) int {
	s.sweepAll(nowNS)
	return int(s.room.keys.Load())
}

// Random returns a live key, each with the same probability, or false if there is none. It does not touch it.
func (s *Store) Random(nowNS int64) (string, bool) {
	for {
		s.sweepAll(nowNS)
		var total int64
		for i := range s.shards {
			total += s.shards[i].held.Load()
		}
		if total == 0 {
			return "", false
		}
		place := rand.Int64N(total)
		for i := range s.shards {
			sh := &s.shards[i]
			if held := sh.held.Load(); place >= held {
				place -= held
				continue
			}
			if key, ok := sh.at(place, nowNS); ok {
				return key, true
			}
			break // it went in the meantime
		}
	}
}

// at returns the live key at a place of the dense slice.
func (sh *shard) at(place, nowNS int64) (string, bool) {
	sh.lock(nowNS)
	defer sh.mu.Unlock()
	if place >= int64(len(sh.dense)) || sh.dense[place].dead(nowNS) {
		return "", false
	}
	return sh.dense[place].key, true
}
