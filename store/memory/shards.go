package memory

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

// shards are all of a store's, and what they share. A key's hash leads to its shard.
type shards struct {
	all     []shard
	seed    maphash.Seed
	flushes atomic.Uint64 // changes under all locks, so is steady under any
	room    room
	memory  table.Reserves
	wall    table.WallAhead
	lanes   [lanes]lane

	*policy.Set // named limits and rules, which are neither keys nor evicted, nor does Flush remove them
}

func (s *shards) lane(a store.Access) *lane { return &s.lanes[a.Lane%lanes] }

// Hash returns a hash of a key. Nobody outside of the process can foresee any of its bits.
func (s *shards) Hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// shardIndex uses the lower bits of a hash; its upper half is the tag.
func (s *shards) shardIndex(hash uint64) int { return int(hash & uint64(len(s.all)-1)) }

func (s *shards) shardOf(hash uint64) *shard { return &s.all[s.shardIndex(hash)] }

// lockKey locks the shard of a key and looks the key up in it. e is nil where there is no such key. The caller unlocks the shard.
func (s *shards) lockKey(key []byte, a store.Access) (sh *shard, n uint32, e *table.Slot) {
	hash := s.Hash(key)
	sh = s.shardOf(hash)
	sh.lock(a.NowNS)
	n, e = sh.find(hash, key, a)
	return sh, n, e
}

func (s *shards) shardSetOf(hash uint64) shardSet { return 1 << s.shardIndex(hash) }

// lockAll locks the shards, lowest index first, as Flush does.
func (s *shards) lockAll(set shardSet, nowNS int64) {
	for ; set != 0; set &= set - 1 {
		s.all[bits.TrailingZeros64(uint64(set))].lock(nowNS)
	}
}

func (s *shards) unlockAll(set shardSet) {
	for ; set != 0; set &= set - 1 {
		s.all[bits.TrailingZeros64(uint64(set))].unlock()
	}
}

func (s *shards) latestNS() (latest int64) {
	for i := range s.all {
		sh := &s.all[i]
		sh.mu.Lock()
		latest = max(latest, sh.latestNS)
		sh.unlock()
	}
	return latest
}

// WallNS is the wall time at an instant of limit time. At first they are the same.
func (s *shards) WallNS(nowNS int64) int64 { return nowNS + s.wall.Load() }

// lanes is how many callers count without sharing a cache line.
const lanes = 64

// lane has the counts of calls that took no lock. They mean what those of Stats do.
type lane struct {
	hits, changes atomic.Int64
	_             [48]byte // up to a cache line
}

// counts are those of one batch.
type counts struct{ hits, changes int64 }

func (l *lane) count(c counts) {
	if c.hits > 0 {
		l.hits.Add(c.hits)
	}
	if c.changes > 0 {
		l.changes.Add(c.changes)
	}
}

// flush removes all keys, at nowNS: see Store.Flush.
func (s *shards) flush(nowNS int64) {
	for i := range s.all {
		s.all[i].lock(0)
	}
	for i := range s.all {
		sh := &s.all[i]
		sh.changes += sh.InUse
		sh.clear()
		sh.journal.clear()
	}
	s.room.clear()
	s.memory.Drop()
	s.flushes.Add(1)
	for i := range s.all {
		s.all[i].pokeAll(nowNS)
		s.all[i].unlock()
	}
}

// init makes so many shards, a power of two. With journal they collect changes.
func (s *shards) init(n int, policies *policy.Set, withJournal bool) {
	s.all, s.seed, s.Set = make([]shard, n), maphash.MakeSeed(), policies
	s.memory.Init()
	for i := range s.all {
		sh := &s.all[i]
		sh.room, sh.seed, sh.policies = &s.room, s.seed, policies
		sh.UseMemory(&s.memory, &s.wall)
		if withJournal {
			sh.journal = &journal{most: mostGone(n)}
		}
		sh.clear()
	}
}

// pokeAll pokes all queues, as a policy or a rule has changed.
func (s *shards) pokeAll(nowNS int64) {
	for i := range s.all {
		sh := &s.all[i]
		sh.mu.Lock()
		sh.pokeAll(nowNS)
		sh.unlock()
	}
}

// waitedKeys is for how many keys somebody waits.
func (s *shards) waitedKeys() (keys int64) {
	for i := range s.all {
		sh := &s.all[i]
		sh.mu.Lock()
		keys += int64(len(sh.waited.OfKey))
		sh.unlock()
	}
	return keys
}
