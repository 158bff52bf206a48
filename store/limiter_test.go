package store_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/storetest"
)

// A Store is a Limiter, with one shard or many.
func TestLimiter(t *testing.T) {
	for _, shards := range []int{1, 16, 128} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			storetest.Run(t, func() store.Limiter { return store.New(store.Options{Shards: shards, MaxKeys: 1000}) })
		})
	}
}
