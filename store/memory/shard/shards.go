package shard

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

// Shards are all of a store's, and what they share. A key's hash leads to its shard.
type Shards struct {
	All     []Shard
	seed    maphash.Seed
	flushes atomic.Uint64 // changes under all locks, so is steady under any
	Room    room
	memory  table.Reserves
	Wall    table.WallAhead
	lanes   [lanes]lane

	*policy.Set // named limits and rules. They are no keys: nothing evicts them, and Flush keeps them
}

func (s *Shards) Lane(a store.Access) *lane { return &s.lanes[a.Lane%lanes] }

// Hash returns a hash of a key. Nobody outside of the process can foresee any of its bits.
func (s *Shards) Hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// shardIndex uses the lower bits of a hash; its upper half is the tag.
func (s *Shards) shardIndex(hash uint64) int { return int(hash & uint64(len(s.All)-1)) }

func (s *Shards) ShardOf(hash uint64) *Shard { return &s.All[s.shardIndex(hash)] }

// lockKey locks the shard of a key and looks the key up in it. e is nil where there is no such key. The caller unlocks the shard.
func (s *Shards) lockKey(key []byte, a store.Access) (sh *Shard, n uint32, e *table.Slot) {
	hash := s.Hash(key)
	sh = s.ShardOf(hash)
	sh.Lock(a.NowNS)
	n, e = sh.Find(hash, key, a)
	return sh, n, e
}

func (s *Shards) ShardSetOf(hash uint64) ShardSet { return 1 << s.shardIndex(hash) }

// LockAll locks the shards, lowest index first, as Flush does.
func (s *Shards) LockAll(set ShardSet, nowNS int64) {
	for ; set != 0; set &= set - 1 {
		s.All[bits.TrailingZeros64(uint64(set))].Lock(nowNS)
	}
}

func (s *Shards) UnlockAll(set ShardSet) {
	for ; set != 0; set &= set - 1 {
		s.All[bits.TrailingZeros64(uint64(set))].Unlock()
	}
}

func (s *Shards) latestNS() (latest int64) {
	for i := range s.All {
		sh := &s.All[i]
		sh.Mu.Lock()
		latest = max(latest, sh.LatestNS)
		sh.Unlock()
	}
	return latest
}

// WallNS is the wall time at an instant of limit time. At first they are the same.
func (s *Shards) WallNS(nowNS int64) int64 { return nowNS + s.Wall.Load() }

// lanes is how many callers count without sharing a cache line.
const lanes = 64

// lane counts calls that took no lock. They mean what those of Stats do.
type lane struct {
	hits, changes atomic.Int64
	_             [48]byte // up to a cache line
}

// Counts are those of one batch.
type Counts struct{ hits, changes int64 }

func (l *lane) Count(c Counts) {
	if c.hits > 0 {
		l.hits.Add(c.hits)
	}
	if c.changes > 0 {
		l.changes.Add(c.changes)
	}
}

// Flush removes all keys, at nowNS: see Store.Flush.
func (s *Shards) Flush(nowNS int64) {
	for i := range s.All {
		s.All[i].Lock(0)
	}
	for i := range s.All {
		sh := &s.All[i]
		sh.changes += sh.InUse
		sh.clear()
		sh.Journal.clear()
	}
	s.Room.clear()
	s.memory.Drop()
	s.flushes.Add(1)
	for i := range s.All {
		s.All[i].pokeAll(nowNS)
		s.All[i].Unlock()
	}
}

// Init makes so many shards, a power of two. With journal they collect changes.
func (s *Shards) Init(n int, policies *policy.Set, withJournal bool) {
	s.All, s.seed, s.Set = make([]Shard, n), maphash.MakeSeed(), policies
	s.memory.Init()
	for i := range s.All {
		sh := &s.All[i]
		sh.room, sh.seed, sh.policies = &s.Room, s.seed, policies
		sh.UseMemory(&s.memory, &s.Wall)
		if withJournal {
			sh.Journal = &journal{most: mostRemoved(n)}
		}
		sh.clear()
	}
}

// PokeAll pokes all lines, as a policy or a rule has changed.
func (s *Shards) PokeAll(nowNS int64) {
	for i := range s.All {
		sh := &s.All[i]
		sh.Mu.Lock()
		sh.pokeAll(nowNS)
		sh.Unlock()
	}
}

// WaitedKeys is for how many keys somebody waits.
func (s *Shards) WaitedKeys() (keys int64) {
	for i := range s.All {
		sh := &s.All[i]
		sh.Mu.Lock()
		keys += int64(len(sh.waited.OfKey))
		sh.Unlock()
	}
	return keys
}
