package shard

import "celld/store/policy"

// Options are those of a Store.
type Options struct {
	MaxKeys int64 // 0: a million
	Shards  int   // 0: 16
	Journal bool
}

// Store is all that the package has, as package memory has it.
type Store struct {
	Shards
	Sweeper
	Capacity
	Exports
	Teller
}

func New(o Options) *Store {
	if o.MaxKeys == 0 {
		o.MaxKeys = 1_000_000
	}
	if o.Shards == 0 {
		o.Shards = 16
	}
	s := &Store{}
	s.Shards.Init(o.Shards, &policy.Set{Journal: o.Journal}, o.Journal)
	s.Sweeper.Shards, s.Capacity.Shards, s.Exports.Shards, s.Teller.Shards = &s.Shards, &s.Shards, &s.Shards, &s.Shards
	s.Capacity.Init(o.MaxKeys, 0, false)
	return s
}

// SetLimitsNow is SetCapacity, and then Shrink until nothing is left to remove.
func (s *Store) SetLimitsNow(maxKeys, maxBytes int64, noEviction bool) {
	s.SetCapacity(maxKeys, maxBytes, noEviction)
	for s.Shrink() { //nolint:revive // it does all
	}
}
