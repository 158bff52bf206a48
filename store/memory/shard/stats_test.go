package shard_test

import (
	"fmt"
	"math"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/shard"
	"celld/store/memory/table"
)

func TestStats(t *testing.T) {
	limit := memtest.MustLimit(t, 5, 1, 60)
	s := memory.New(memory.Options{})
	memtest.MustAllow(t, s, []byte("a"), limit, t0)          // miss
	memtest.MustAllow(t, s, []byte("a"), limit, t0)          // hit
	s.Get([]byte("a"), memtest.At(t0))                       // hit
	s.Get([]byte("b"), memtest.At(t0))                       // miss
	memtest.MustPut(t, s, "c", memtest.Plain, t0)            // neither
	s.Get([]byte("c"), memtest.At(t0))                       // hit: it is there
	memtest.MustPut(t, s, "d", memtest.Live(t0, second), t0) // neither
	s.Get([]byte("d"), memtest.At(t0+second))                // miss: dead
	s.Delete([]byte("a"), t0)                                // neither
	s.Rename([]byte("c"), []byte("e"), memtest.At(t0))       // neither
	_, _ = s.Throttle([]byte("f"), limit, 0, memtest.At(t0)) // miss
	want := shard.Stats{Expired: 1, Hits: 3, Misses: 4, Changes: 7, Bytes: table.OverheadBytes, Protected: 1}
	if got := s.Stats(t0); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStatsOfExpiry(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range 1000 {
		memtest.MustPut(t, s, fmt.Sprint("tat", i), memtest.Live(t0, 10*second), t0)
		memtest.MustPut(t, s, fmt.Sprint("none", i), store.Value{TAT: uint64(t0 + 70*second), ExpiryNS: store.NoExpiry}, t0)
		memtest.MustPut(t, s, fmt.Sprint("count", i), store.Value{Count: 5, ExpiryNS: t0 + 10*second}, t0)
	}
	if st := s.Stats(t0 + second); st.WithExpiry != 2000 || st.AvgTTLNS != 9*second {
		t.Errorf("%+v", st)
	}
	memtest.MustPut(t, s, "tat7", store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0) // PERSIST
	memtest.MustPut(t, s, "none7", memtest.Live(t0, 10*second), t0)
	memtest.MustPut(t, s, "none8", memtest.Live(t0, 10*second), t0)
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
	memtest.MustPut(t, s, "k", store.Value{TAT: math.MaxUint64}, t0)
	if got := s.Stats(t0).AvgTTLNS; got != math.MaxInt64 {
		t.Error(got)
	}
}
