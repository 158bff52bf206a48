package store

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"celld/store/policy"
)

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64 // a shardSet has a bit for each

	// Up to so many keys there is one shard, so that the least recently used key is the one evicted. Above it is the
	// least recently used of 1/16 of the keys, at least 4,096 of them: no application sees the difference, while 16
	// locks let as many cores in.
	oneShardMaxKeys = 1 << 16
	manyShards      = 16

	// perLock is how many keys are handled at most before a lock is let go: to sweep so many of a million takes 0.1 ms.
	perLock = 64

	// bytesPerLock is how many bytes of keys are told at most before a lock is let go, by the estimate of MaxBytes: 64 keys of 60 KB
	// are 4 MB, which a buffer would be grown for.
	bytesPerLock = 1 << 20
)

// ErrFull reports that a new key was refused, or what a limit takes more, and that nothing has changed: the store is full and
// NoEviction set, or they alone are more than MaxBytes, or more than MaxKeys.
var ErrFull = errors.New("store is full")

// Options are the limits of a Store. The zero value is a store of a million keys that evicts.
type Options struct {
	MaxKeys    int64 // most keys held; 0 or less: 1,000,000
	MaxBytes   int64 // most bytes held: for each key its length and OverheadBytes, and see TallyBytes; 0 or less: no limit
	NoEviction bool  // refuse new keys and limits when full, instead of evicting
	Shards     int   // rounded up to a power of two, at most 64; 0 or less: 1 up to 65,536 MaxKeys, else 16
	Journal    bool  // collect changes for Drain; off, they cost nothing
}

// Store maps keys to states. Make one with New.
type Store struct {
	seed   maphash.Seed
	shards []shard
	room   room
	memory memory
	resize resize

	policy.Set // named limits and rules, which are neither keys nor evicted, nor does Flush remove them
	losses     losses
	wall       wallAhead

	sweeps atomic.Uint32 // rotates the shard that Sweep starts with

	exports exports
	flushes atomic.Uint64 // changes under all locks, so is steady under any
	drain   drain
}

// New returns an empty store.
func New(o Options) *Store {
	if o.MaxKeys <= 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.Shards <= 0 {
		o.Shards = manyShards
		if o.MaxKeys <= oneShardMaxKeys {
			o.Shards = 1
		}
	}
	shards := 1 << bits.Len(uint(min(o.Shards, maxShards)-1))
	s := &Store{seed: maphash.MakeSeed(), shards: make([]shard, shards)}
	s.memory.init()
	s.resize.maxKeys, s.resize.maxBytes = o.MaxKeys, max(o.MaxBytes, 0)
	s.room.maxKeys.Store(s.resize.maxKeys)
	s.room.maxBytes.Store(s.resize.maxBytes)
	s.room.noEviction.Store(o.NoEviction)
	s.Set.Journal = o.Journal
	for i := range s.shards {
		sh := &s.shards[i]
		sh.room, sh.seed, sh.policies, sh.wall = &s.room, s.seed, &s.Set, &s.wall
		sh.index.memory, sh.slabs.memory, sh.keys.tails.reserve = &s.memory, &s.memory, &s.memory.tails
		if o.Journal {
			sh.journal = &journal{}
		}
		sh.clear()
	}
	return s
}

func (s *Store) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// shardIndex takes the lower bits; the upper half of a hash is the tag.
func (s *Store) shardIndex(hash uint64) int { return int(hash & uint64(len(s.shards)-1)) }

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[s.shardIndex(hash)] }

// Flush removes all keys, at one instant for every other call. It counts neither as eviction nor as expiry, and drops
// the tables rather than emptying them, which gives their memory back.
func (s *Store) Flush() {
	for i := range s.shards {
		s.shards[i].mu.Lock()
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.changes += sh.inUse
		sh.clear()
		sh.journal.clear()
	}
	s.room.clear()
	s.memory.drop()
	s.flushes.Add(1)
	for i := range s.shards {
		s.shards[i].mu.Unlock()
	}
}
