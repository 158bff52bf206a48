package memory

import (
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
	"celld/store/waiting"
)

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64 // a shardSet has a bit for each

	// Up to so many keys there is one shard, and the least recently used key of all is evicted. Above, it is the least
	// recently used of a shard's keys, which are 1,024 or more. No application sees the difference. There are at least 16
	// shards and four for each core, so that a new key seldom meets another in its shard's lock. On 2 cores, 64 shards took a
	// tenth off calls of which an eighth were new keys, and 1.5 MB more memory for a small table.
	oneShardMaxKeys = 1 << 16
	leastShards     = 16
	shardsPerCore   = 4

	// perLock is the most keys that are handled under one lock. Sweeping so many of a million takes 0.1 ms.
	perLock = store.MaxTakes

	// bytesPerLock is the most bytes of keys that are told under one lock, by the estimate of MaxBytes. Without it, 64 keys of
	// 60 KB would make the reader's buffer grow to 4 MB.
	bytesPerLock = 1 << 20
)

// Options are the limits of a Store. The zero value is a store of a million keys that evicts.
type Options struct {
	MaxKeys    int64 // most keys held; 0 or less: 1,000,000
	MaxBytes   int64 // most bytes held: for each key its length and OverheadBytes, and see TallyBytes; 0 or less: no limit
	NoEviction bool  // refuse new keys and limits when full, instead of evicting
	Shards     int   // rounded up to a power of two, at most 64; 0 or less: 1 up to 65,536 MaxKeys, else 16 or 4 a core
	Journal    bool  // collect changes for Drain; off, they cost nothing

	MaxWaiters int64        // most callers that wait at once; 0 or less: 10,000
	Now        func() int64 // limit time, Unix ns, for those who wait; nil: the system's clock

	// Policies are the store's policies and rules, where they are not its own: then nobody is told of their changes, and calls that
	// wait do not notice them. nil: its own.
	Policies *policy.Set

	// NewID gives a lease its ID, which must be higher than all that its keys have had. us is the wall time in Unix µs. nil: Policies.NextID.
	NewID func(us int64) uint64
}

// Store maps keys to states. Make one with New.
type Store struct {
	seed    maphash.Seed
	shards  []shard
	flushes atomic.Uint64 // changes under all locks, so is steady under any
	room    room
	memory  table.Reserves
	resize  resize

	*policy.Set // named limits and rules, which are neither keys nor evicted, nor does Flush remove them
	losses      losses
	wall        table.WallAhead
	waits       waiting.Room[*waiter]
	waitedKeys  atomic.Int64
	pending     sync.Pool
	now         func() int64
	newID       func(us int64) uint64

	lanes [lanes]lane

	sweeps atomic.Uint32 // rotates the shard that Sweep starts with

	exports exports
	drain   drain
}

// New returns an empty store.
func New(o Options) *Store {
	if o.MaxKeys <= 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.Shards <= 0 {
		o.Shards = max(leastShards, shardsPerCore*runtime.GOMAXPROCS(0))
		if o.MaxKeys <= oneShardMaxKeys {
			o.Shards = 1
		}
	}
	shards := 1 << bits.Len(uint(min(o.Shards, maxShards)-1))
	s := &Store{seed: maphash.MakeSeed(), shards: make([]shard, shards)}
	s.memory.Init()
	s.resize.maxKeys, s.resize.maxBytes = o.MaxKeys, max(o.MaxBytes, 0)
	s.room.maxKeys.Store(s.resize.maxKeys)
	s.room.maxBytes.Store(s.resize.maxBytes)
	s.room.noEviction.Store(o.NoEviction)
	if s.now = o.Now; s.now == nil {
		s.now = func() int64 { return time.Now().UnixNano() }
	}
	if s.Set = o.Policies; s.Set == nil {
		s.Set = &policy.Set{Journal: o.Journal, Changed: s.pokeAll}
	}
	s.waits.Init(s.Set)
	s.SetMaxWaiters(o.MaxWaiters)
	if s.newID = o.NewID; s.newID == nil {
		s.newID = s.NextID
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.room, sh.seed, sh.policies = &s.room, s.seed, s.Set
		sh.UseMemory(&s.memory, &s.wall)
		if o.Journal {
			sh.journal = &journal{most: mostGone(shards)}
		}
		sh.clear()
	}
	s.setNote()
	return s
}

func (s *Store) lane(a store.Access) *lane { return &s.lanes[a.Lane%lanes] }

// Hash returns a hash of a key. Nobody outside of the process can foresee any of its bits.
func (s *Store) Hash(key []byte) uint64 { return s.hash(key) }

func (s *Store) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// shardIndex uses the lower bits of a hash; its upper half is the tag.
func (s *Store) shardIndex(hash uint64) int { return int(hash & uint64(len(s.shards)-1)) }

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[s.shardIndex(hash)] }

// Flush removes all keys, in one step for every other call. It counts neither as eviction nor as expiry. It gives the memory of
// the tables back.
func (s *Store) Flush() {
	for i := range s.shards {
		s.shards[i].lock(0)
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.changes += sh.InUse
		sh.clear()
		sh.journal.clear()
	}
	s.room.clear()
	s.memory.Drop()
	s.flushes.Add(1)
	now := s.now()
	for i := range s.shards {
		s.shards[i].pokeAll(now)
		s.shards[i].unlock()
	}
}
