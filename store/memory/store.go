package memory

import (
	"math/bits"
	"runtime"
	"time"

	"celld/store/memory/shard"
	"celld/store/policy"
)

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64 // a shardSet has a bit for each

	// Up to so many keys there is one shard, which evicts the least recently used key of all. Above, a shard evicts the least recently
	// used of its own 1,024 keys or more. No application sees the difference. There are at least 16 shards and four for each core, so
	// that new keys seldom wait for a shard's lock. On 2 cores, 64 shards made calls a tenth faster where an eighth were on new keys, and
	// took 1.5 MB more memory for a small table.
	oneShardMaxKeys = 1 << 16
	leastShards     = 16
	shardsPerCore   = 4
)

// Options are the limits of a Store. The zero value is a store of a million keys that evicts.
type Options struct {
	MaxKeys    int64 // most keys held; 0 or less: 1,000,000
	MaxBytes   int64 // most bytes held, by the estimate of table.CostBytes and table.LimitEntryBytes; 0 or less: no limit
	NoEviction bool  // refuse new keys and limits when full, instead of evicting
	Shards     int   // rounded up to a power of two, at most 64; 0 or less: 1 up to 65,536 MaxKeys, else 16 or 4 a core
	Journal    bool  // collect changes for Drain; off, they cost nothing

	MaxWaiters int64        // most callers that wait at once; 0 or less: 10,000
	Now        func() int64 // limit time, Unix ns, for those who wait; nil: the system's clock

	// Policies are policies and rules that others change: the store hears nothing of it, and calls that wait do not notice. nil: the
	// store has its own.
	Policies *policy.Set

	// NewID returns the ID of a new lease, which must be above all that its keys have had. us is the wall time in Unix µs. nil:
	// Policies.NextID.
	NewID func(us int64) uint64
}

// Store maps keys to states. Make one with New.
type Store struct {
	shard.Shards
	takes
	shard.Sweeper
	shard.Capacity
	shard.Exports
	shard.Teller
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
	s := &Store{}
	if o.Policies == nil {
		o.Policies = &policy.Set{Journal: o.Journal, Changed: func() { s.PokeAll(s.now()) }}
	}
	s.Shards.Init(1<<bits.Len(uint(min(o.Shards, maxShards)-1)), o.Policies, o.Journal)
	s.takes = takes{Shards: &s.Shards, now: o.Now, newID: o.NewID}
	if s.now == nil {
		s.now = func() int64 { return time.Now().UnixNano() }
	}
	if s.newID == nil {
		s.newID = s.NextID
	}
	s.waits.Init(o.Policies)
	s.SetMaxWaiters(o.MaxWaiters)
	s.Sweeper.Shards = &s.Shards
	s.Exports.Shards, s.Teller.Shards = &s.Shards, &s.Shards
	s.Capacity.Shards = &s.Shards
	s.Capacity.Init(o.MaxKeys, max(o.MaxBytes, 0), o.NoEviction)
	return s
}

// Flush removes all keys, in one step for every other call. It counts neither as eviction nor as expiry. It gives the memory of
// the tables back.
func (s *Store) Flush() { s.Shards.Flush(s.now()) }

// SettingText is what a setting says: see policy.Set.
func (s *Store) SettingText(setting policy.Setting) (string, bool) {
	return s.Set.SettingText(setting, s.Wall.Load())
}

// PutSetting is the reverse of SettingText. A rule that is over is left out.
func (s *Store) PutSetting(setting policy.Setting, text string, nowNS int64) error {
	return s.Set.PutSetting(setting, text, nowNS, s.Wall.Load())
}
