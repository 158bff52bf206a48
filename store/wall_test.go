package store_test

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
)

const hour = 3600 * second

// What is taken back is what it was in time, whatever the wall clock has been set to since.
func TestUndoAfterTheWallClockWasSet(t *testing.T) {
	for _, by := range []int64{hour, -hour} {
		s := store.New(store.Options{Journal: true})
		s.KeepUndo()
		limit := mustLimit(t, 9, 10, 3600)
		literal, err := cell.ParseLiteral("100/1h,algo=log")
		if err != nil {
			t.Fatal(err)
		}
		take := func(mode cell.Mode, cost int64) cell.Decision {
			calls := []store.Call{{Key: []byte("log"), Limit: &literal}}
			if _, err := s.Take(calls, store.TakeOptions{Cost: cost, Mode: mode}, at(t0)); err != nil {
				t.Fatal(err)
			}
			return calls[0].Decision
		}
		mustAllow(t, s, []byte("tat"), limit, t0)
		take(cell.Take, 3)
		_ = s.Update([]byte("expires"), at(t0), func(store.State, bool) (store.State, store.Action) {
			return store.State{TAT: uint64(t0 + 9*hour), ExpiryNS: t0 + 2*hour}, store.Put
		})
		before := take(cell.Peek, 1)
		drain(s, func(store.Change) {})
		s.Keep()
		mustAllow(t, s, []byte("tat"), limit, t0)
		take(cell.Take, 5)
		s.Delete([]byte("expires"), t0)
		s.SetWall(t0+by, t0)
		s.Undo(t0)
		if st, ok := s.Get([]byte("tat"), at(t0)); !ok || int64(st.TAT) != t0+360*second+by {
			t.Errorf("by %d: %v, %v", by, st, ok)
		}
		if st, ok := s.Get([]byte("expires"), at(t0)); !ok || int64(st.TAT) != t0+9*hour+by || st.ExpiryNS != t0+2*hour {
			t.Errorf("by %d: %v, %v", by, st, ok)
		}
		if after := take(cell.Peek, 1); after != before {
			t.Errorf("by %d: was %+v, is %+v", by, before, after)
		}
	}
}

// Whatever is told after the wall clock was set is told in the new wall time, also of keys that were renamed before.
func TestExportAfterTheWallClockWasSet(t *testing.T) {
	s := store.New(store.Options{Shards: 1})
	const keys = 3000
	for i := range keys {
		mustPut(t, s, fmt.Sprint("k", i), live(t0, 2*hour), t0)
	}
	told := 0
	tell := func(wantNS int64) func([]byte, store.State) {
		return func(key []byte, st store.State) {
			if told++; int64(st.TAT) != wantNS {
				t.Fatalf("%s until %d, want %d", key, st.TAT, wantNS)
			}
		}
	}
	p, more := s.Export(s.StartExport(), t0, tell(t0+2*hour))
	for i := range keys {
		s.Rename(fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "renamed%d", i), t0)
	}
	s.SetWall(t0+hour, t0)
	for more {
		p, more = s.Export(p, t0, tell(t0+3*hour))
	}
	s.EndExport(p)
	if told < keys {
		t.Errorf("%d keys of %d", told, keys)
	}
}

// A key that expires by the wall clock is swept when that says so.
func TestSweepAfterTheWallClockWasSet(t *testing.T) {
	for _, by := range []int64{hour, -hour, 900 * hour} {
		s := store.New(store.Options{})
		_ = s.Update([]byte("k"), at(t0), func(store.State, bool) (store.State, store.Action) {
			return store.State{TAT: uint64(t0 + 9000*hour), ExpiryNS: t0 + 1000*hour}, store.Put
		})
		s.SetWall(t0+by, t0)
		end := t0 + 1000*hour - by
		if n := sweep(s, end-1); n != 0 {
			t.Errorf("by %d: %d swept before its end", by, n)
		}
		if n := sweep(s, end); n != 1 {
			t.Errorf("by %d: %d swept at its end", by, n)
		}
	}
}

// BenchmarkSetWall is how long all wait while the wall clock is set, with a million keys.
func BenchmarkSetWall(b *testing.B) {
	s := store.New(store.Options{MaxKeys: 1 << 20})
	literal, err := cell.ParseLiteral("100/1h")
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		key := fmt.Appendf(nil, "key:%d", i)
		if i%2 == 0 {
			mustPut(b, s, string(key), live(t0, hour), t0)
		} else if _, err := s.Take([]store.Call{{Key: key, Limit: &literal}}, store.TakeOptions{Cost: 1}, at(t0)); err != nil {
			b.Fatal(err)
		}
	}
	for i := int64(0); b.Loop(); i++ {
		s.SetWall(t0+i*second, t0)
	}
}
