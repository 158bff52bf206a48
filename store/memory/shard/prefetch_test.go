//go:build !race

package shard_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"

	"pgregory.net/rapid"
)

// The same calls go one by one to a store and in batches to another, also with too little room, keys that die between
// the batches, and several for one key in a batch. With several shards there is room, as the two shard differently.
func TestBatchesDecideAsSingleCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := memory.Options{Shards: rapid.SampledFrom([]int{1, 16, 128}).Draw(t, "shards"), MaxKeys: 1000}
		if o.Shards == 1 {
			o.MaxKeys = rapid.SampledFrom([]int64{1, 5, 60, 1000}).Draw(t, "maxKeys")
			o.NoEviction = rapid.Bool().Draw(t, "noEviction")
		}
		single, batched := memory.New(o), memory.New(o)
		now := t0
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			now += rapid.Int64Range(0, 30).Draw(t, "ns")
			a := store.Access{NowNS: now, NoTouch: rapid.Bool().Draw(t, "noTouch")}
			reqs := make([]store.Request, rapid.SampledFrom([]int{1, 2, 10, store.MaxTakes}).Draw(t, "requests"))
			spread := rapid.SampledFrom([]int{1, 30, 500}).Draw(t, "spread")
			for i := range reqs {
				limit := memtest.MustLimit(t, int64(i%4), second/int64(1+i%20), 1)
				quantity := rapid.SampledFrom([]int64{1, 1, 1, 0, 2, -1, 1 << 62}).Draw(t, "quantity")
				key := fmt.Append(nil, rapid.IntRange(0, spread).Draw(t, "key"))
				reqs[i] = store.Request{Key: key, Bucket: limit, Quantity: quantity, Decision: cell.Decision{Limit: 77}, Err: errors.New("old")}
			}
			batched.ThrottleBatch(reqs, a, nil)
			for i, r := range reqs {
				want, wantErr := single.Throttle(r.Key, r.Bucket, r.Quantity, a)
				if r.Decision != want || fmt.Sprint(r.Err) != fmt.Sprint(wantErr) {
					t.Fatalf("request %d of %d: %+v, %v; want %+v, %v", i, len(reqs), r.Decision, r.Err, want, wantErr)
				}
			}
		}
		if got, want := memtest.Contents(t, batched, now), memtest.Contents(t, single, now); !maps.Equal(got, want) {
			t.Fatalf("keys are %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		batched.Len(now)
		single.Len(now)
		got, want := batched.Stats(now), single.Stats(now)
		got.AvgTTLNS, want.AvgTTLNS = 0, 0 // of samples, which differ
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

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
