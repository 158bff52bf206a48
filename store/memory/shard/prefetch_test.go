//go:build !race

package shard_test

import (
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// Of a table that is larger than the caches all lines are touched ahead, which nothing but speed may depend on.
func TestBatchesOfALargeTable(t *testing.T) {
	const n = 40_000
	limit := memtest.MustLimit(t, 0, 1, 3600)
	for _, o := range []memory.Options{{MaxKeys: n, Shards: 1}, {MaxKeys: n, Shards: 16}, {MaxKeys: n, Shards: 128}, {}} {
		s, keys := memory.New(o), memtest.Keys16(n)
		reqs := make([]store.Request, 64)
		for round := range 2 { // first all pass, then none
			for i := 0; i < n; i += len(reqs) {
				for j := range reqs {
					reqs[j] = store.Request{Key: keys[(i+j)%n], Bucket: limit, Quantity: int64(round)}
					if round == 0 {
						reqs[j].Quantity = 1
					}
				}
				batch := reqs[:min(len(reqs), n-i)]
				s.ThrottleBatch(batch, memtest.At(t0), nil)
				for _, r := range batch {
					if r.Err != nil || r.Decision.Limited != (round == 1) {
						t.Fatalf("%+v, round %d: %+v", o, round, r)
					}
				}
			}
		}
		if st := s.Stats(t0); st.Hits != n || st.Misses != n || st.Protected != n || st.Evicted != 0 {
			t.Errorf("%+v: %+v", o, st)
		}
	}
}

func TestBatchesAllocateNothingForKeysThatAreThere(t *testing.T) {
	limit := memtest.MustLimit(t, 1<<30, 1000, 1)
	for _, n := range []int{64, 50_000} {
		for _, o := range []memory.Options{{Shards: 1}, {Shards: 16}, {MaxKeys: int64(n), Shards: 16}} {
			s, keys := memory.New(o), memtest.Keys16(n)
			for _, key := range keys {
				memtest.MustAllow(t, s, key, limit, t0)
			}
			reqs := make([]store.Request, 64)
			i := 0
			if allocs := testing.AllocsPerRun(100, func() {
				for j := range reqs {
					i = (i + 7919) % n
					reqs[j] = store.Request{Key: keys[i], Bucket: limit, Quantity: 1}
				}
				s.ThrottleBatch(reqs, memtest.At(t0), nil)
			}); allocs != 0 {
				t.Errorf("%+v, %d keys: a batch allocates %v times", o, n, allocs)
			}
		}
	}
}
