package shard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/storetest"
)

// A store of shards passes what every store does.
func TestStore(t *testing.T) {
	storetest.Run(t, func() store.Limiter { return memory.New(memory.Options{Shards: 16, MaxKeys: 1000}) })
	storetest.RunStore(t, func() (store.Store, *policy.Set) {
		s := memory.New(memory.Options{MaxKeys: 1000})
		return memory.Port{Store: s}, s.Set
	})
}

func TestWaits(t *testing.T) {
	storetest.RunWaits(t, func(*testing.T) (storetest.Waits, func()) {
		now := func() int64 { return time.Now().UnixNano() }
		return memory.New(memory.Options{Now: now, Shards: 4, Journal: true}), synctest.Wait
	})
}
