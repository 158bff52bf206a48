//go:build all

package memory_test

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/cell/lease"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// As many leases of one key as there may be end at once, and one more is refused. How long that takes: BenchmarkPause.
func TestAllLeasesOfAKeyEndAtOnce(t *testing.T) {
	for _, limit := range []string{"2000000/1s,algo=conc", "2000000/1h", "2000000/1h,algo=slide,buckets=60", "2000000/1h,algo=log"} {
		l := limitOf(t, limit)
		s := memory.New(memory.Options{})
		calls := []store.Call{{Key: []byte("k"), Limit: l}}
		terms := store.Terms{LeaseNS: second}
		if l.Algo == cell.Conc {
			terms.LeaseNS = 0
		}
		for i := range int64(lease.Max) {
			if taken, err := s.Take(calls, store.TakeOptions{Cost: 1, Terms: &terms}, memtest.At(t0+i)); err != nil || taken.Limited {
				t.Fatal(limit, i, taken, err)
			}
		}
		if _, err := s.Take(calls, store.TakeOptions{Cost: 1, Terms: &terms}, memtest.At(t0+lease.Max)); err != store.ErrTooManyLeases {
			t.Errorf("%s: one more: %v", limit, err)
		}
		if n := left(t, s, "k", limit, t0+2*second); n != 2000000 {
			t.Errorf("%s: %d left", limit, n)
		}
	}
}

// So do a million keys with one lease each: Sweep removes them.
func TestAMillionLeasesEndAtOnce(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 2_000_000})
	l := limitOf(t, "5/1m,algo=conc")
	for i := range 1_000_000 {
		s.Take([]store.Call{{Key: fmt.Appendf(nil, "key:%d", i), Limit: l}}, store.TakeOptions{Cost: 1}, memtest.At(t0))
	}
	for s.Sweep(t0 + 60*second) {
	}
	if st := s.Stats(t0 + 60*second); st.Bytes != 0 {
		t.Errorf("%d bytes are left", st.Bytes)
	}
}
