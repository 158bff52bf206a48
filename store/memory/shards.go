package memory

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"celld/store"
	"celld/store/memory/table"
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
