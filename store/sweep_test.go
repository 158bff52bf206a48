package store_test

import (
	"fmt"
	"testing"

	"celld/store"
)

func TestSweep(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := store.New(store.Options{Shards: shards})
			for i := range int64(1000) {
				mustPut(t, s, fmt.Sprint(i), live(t0, 1+i), t0)
			}
			mustPut(t, s, "spent", plain, t0)
			expect := func(nowNS int64, max, removed int, more bool) {
				t.Helper()
				if gotRemoved, gotMore := s.Sweep(nowNS, max); gotRemoved != removed || gotMore != more {
					t.Fatalf("swept %d, more %v; want %d, %v", gotRemoved, gotMore, removed, more)
				}
			}
			expect(t0, 100, 0, false)
			expect(t0+500, 0, 0, true)
			expect(t0+500, 200, 200, true)
			expect(t0+500, 299, 299, true)
			expect(t0+500, 1, 1, false)
			expect(t0+500, 1, 0, false)
			expect(t0+1000, 1<<40, 500, false)
			expectKeys(t, s, t0+1000, "spent")
			if st := s.Stats(t0); st.Expired != 1000 || st.Bytes != 5+store.OverheadBytes {
				t.Errorf("%+v", st)
			}
		})
	}
}

// That calls have moved the ends of many keys on does not hide one that is due.
func TestSweepSeesPastKeysThatLiveOn(t *testing.T) {
	limit := mustLimit(t, 10, 1, 1)
	s := store.New(store.Options{Shards: 1})
	for i := range 1000 {
		mustAllow(t, s, fmt.Append(nil, i), limit, t0) // ends at t0 + 1 s
	}
	for i := range 999 {
		mustAllow(t, s, fmt.Append(nil, i), limit, t0) // ends at t0 + 2 s
	}
	if removed, more := s.Sweep(t0+second, 0); removed != 0 || !more {
		t.Fatalf("swept %d, more %v; want none, and one more", removed, more)
	}
	if removed, more := s.Sweep(t0+second, 1); removed != 1 || more {
		t.Fatalf("swept %d, more %v; want the one", removed, more)
	}
	if removed, more := s.Sweep(t0+2*second, 2000); removed != 999 || more {
		t.Fatalf("swept %d, more %v; want all", removed, more)
	}
}
