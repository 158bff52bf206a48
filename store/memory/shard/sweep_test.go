package shard_test

import (
	"fmt"
	"testing"

	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

func TestSweep(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := memory.New(memory.Options{Shards: shards})
			for i := range int64(1000) {
				memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, 1+i), t0)
			}
			memtest.MustPut(t, s, "count", memtest.Plain, t0)
			expect := func(nowNS, removed int64) {
				t.Helper()
				if got := memtest.Sweep(s, nowNS); got != removed || s.SweepDue(nowNS) {
					t.Fatalf("swept %d, more due %v; want %d", got, s.SweepDue(nowNS), removed)
				}
			}
			expect(t0, 0)
			expect(t0+500, 500)
			expect(t0+500, 0)
			expect(t0+1000, 500)
			memtest.ExpectKeys(t, s, t0+1000, "count")
			if st := s.Stats(t0); st.Expired != 1000 || st.Bytes != table.OverheadBytes {
				t.Errorf("%+v", st)
			}
		})
	}
}

// That calls have moved the ends of many keys on does not hide one that is due.
func TestSweepSeesPastKeysThatLiveOn(t *testing.T) {
	limit := memtest.MustLimit(t, 10, 1, 1)
	s := memory.New(memory.Options{Shards: 1})
	for i := range 1000 {
		memtest.MustAllow(t, s, fmt.Append(nil, i), limit, t0) // ends at t0 + 1 s
	}
	for i := range 999 {
		memtest.MustAllow(t, s, fmt.Append(nil, i), limit, t0) // ends at t0 + 2 s
	}
	if removed := memtest.Sweep(s, t0+second); removed != 1 {
		t.Fatalf("swept %d, want the one", removed)
	}
	if removed := memtest.Sweep(s, t0+2*second); removed != 999 {
		t.Fatalf("swept %d, want all", removed)
	}
}

// However many keys end at once, and however many only seem to, a step is short.
func TestSweepGoesInSteps(t *testing.T) {
	limit := memtest.MustLimit(t, 10, 1, 1)
	s := memory.New(memory.Options{Shards: 1})
	for i := range 10_000 {
		memtest.MustAllow(t, s, fmt.Append(nil, i), limit, t0) // ends at t0 + 1 s
		if i%2 == 0 {
			memtest.MustAllow(t, s, fmt.Append(nil, i), limit, t0) // lives on
		}
	}
	steps, before := 1, int64(0)
	for more := true; more; steps++ {
		more = s.Sweep(t0 + second)
		removed := s.Stats(t0+second).Expired - before
		if before += removed; removed > 64 {
			t.Fatalf("a step removed %d keys", removed)
		}
	}
	if before != 5000 || steps < 10_000/64 {
		t.Errorf("swept %d keys in %d steps", before, steps)
	}
}

// Who counts millions of keys that have just died does not wait for them to go.
func TestLenIsShort(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range 10_000 {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, 1), t0)
	}
	memtest.MustPut(t, s, "live", memtest.Live(t0, second), t0)
	if n := s.Len(t0 + 1); n < 2 || n > 8001 {
		t.Errorf("%d keys after one count, want some of the dead removed and some left", n)
	}
	memtest.Sweep(s, t0+1)
	if n := s.Len(t0 + 1); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}
