package shard_test

import (
	"fmt"
	"math"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/table"
)

func TestStats(t *testing.T) {
	limit := mustLimit(t, 5, 1, 60)
	s := memory.New(memory.Options{})
	mustAllow(t, s, []byte("a"), limit, t0)          // miss
	mustAllow(t, s, []byte("a"), limit, t0)          // hit
	s.Get([]byte("a"), at(t0))                       // hit
	s.Get([]byte("b"), at(t0))                       // miss
	mustPut(t, s, "c", plain, t0)                    // neither
	s.Get([]byte("c"), at(t0))                       // hit: it is there
	mustPut(t, s, "d", live(t0, second), t0)         // neither
	s.Get([]byte("d"), at(t0+second))                // miss: dead
	s.Delete([]byte("a"), t0)                        // neither
	s.Rename([]byte("c"), []byte("e"), at(t0))       // neither
	_, _ = s.Throttle([]byte("f"), limit, 0, at(t0)) // miss
	want := store.Stats{Expired: 1, Hits: 3, Misses: 4, Changes: 7, Bytes: 1 + table.OverheadBytes}
	if got := s.Stats(t0); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStatsOfExpiry(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range 1000 {
		mustPut(t, s, fmt.Sprint("tat", i), live(t0, 10*second), t0)
		mustPut(t, s, fmt.Sprint("none", i), store.Value{TAT: uint64(t0 + 70*second), ExpiryNS: store.NoExpiry}, t0)
		mustPut(t, s, fmt.Sprint("spent", i), store.Value{TAT: 5, ExpiryNS: t0 + 10*second}, t0)
	}
	if st := s.Stats(t0 + second); st.WithExpiry != 2000 || st.AvgTTLNS != 9*second {
		t.Errorf("%+v", st)
	}
	mustPut(t, s, "tat7", store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0) // PERSIST
	mustPut(t, s, "none7", live(t0, 10*second), t0)
	mustPut(t, s, "none8", live(t0, 10*second), t0)
	if st := s.Stats(t0); st.WithExpiry != 2001 {
		t.Errorf("%+v", st)
	}
	s.Len(t0 + 10*second)
	if st := s.Stats(t0 + 10*second); st.WithExpiry != 0 || st.AvgTTLNS != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAvgTTLOfTATsPastInt64(t *testing.T) {
	s := memory.New(memory.Options{})
	mustPut(t, s, "k", store.Value{TAT: math.MaxUint64}, t0)
	if got := s.Stats(t0).AvgTTLNS; got != math.MaxInt64 {
		t.Error(got)
	}
}

func TestShardOptions(t *testing.T) {
	for _, shards := range []int{-1, 0, 1, 2, 3, 1000, 1 << 40} {
		s := memory.New(memory.Options{Shards: shards})
		for _, key := range keys16(100) {
			mustPut(t, s, string(key), plain, t0)
		}
		if got := len(contents(t, s, t0)); got != 100 {
			t.Errorf("shards %d: %d keys", shards, got)
		}
	}
}
