package memory_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/storetest"
)

// A Store is a Limiter, with one shard or many.
func TestLimiter(t *testing.T) {
	for _, shards := range []int{1, 16, 128} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			storetest.Run(t, func() store.Limiter { return memory.New(memory.Options{Shards: shards, MaxKeys: 1000}) })
		})
	}
}

func TestStore(t *testing.T) {
	storetest.RunStore(t, func() (store.Store, *policy.Set) {
		s := memory.New(memory.Options{MaxKeys: 1000})
		return memory.Port{Store: s}, s.Set
	})
}
