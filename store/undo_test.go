package store_test

import (
	"fmt"
	"maps"
	"testing"

	"celld/cell"
	"celld/store"

	"pgregory.net/rapid"
)

// Undo takes a store back to what was told when Keep was last called, whatever has happened before and since it was told,
// and however often it fails in a row.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store.New(store.Options{Shards: rapid.SampledFrom([]int{1, 4}).Draw(t, "shards"), Journal: true})
		limit := mustLimit(t, 3, 1, 1)
		key := func() []byte { return fmt.Append(nil, rapid.IntRange(0, 6).Draw(t, "key")) }
		change := func() {
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0, 1:
				_, _ = s.Throttle(key(), limit, rapid.Int64Range(-2, 3).Draw(t, "quantity"), at(t0))
			case 2:
				s.Delete(key(), t0)
			case 3:
				s.Rename(key(), key(), t0)
			case 4:
				s.RenameNew(key(), key(), t0)
			case 5:
				if from, to := key(), key(); string(from) != string(to) {
					_, _ = s.Copy(from, to, rapid.Bool().Draw(t, "replace"), at(t0))
				}
			default:
				mustPut(t, s, string(key()), store.State{TAT: uint64(t0 + 5*second), ExpiryNS: t0 + rapid.Int64Range(1, 9).Draw(t, "expiry")}, t0)
			}
		}
		changes := func() {
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				change()
			}
		}
		s.KeepUndo()
		kept, copied := contents(t, s, t0), map[string]store.State{}
		tell := func(c store.Change) { replay(copied, c) }
		for range 5 {
			changes()
			told := contents(t, s, t0)
			drain(s, tell)
			changes() // while it is written
			if rapid.Bool().Draw(t, "undo") {
				if rapid.Bool().Draw(t, "tell all") {
					drain(s, tell)
				}
				s.Undo(t0)
				if got := contents(t, s, t0); !maps.Equal(got, kept) {
					t.Fatalf("the store has %v, want %v", got, kept)
				}
			} else {
				s.Keep()
				kept = told
			}
		}
		drain(s, tell)
		if want := contents(t, s, t0); !maps.Equal(copied, want) {
			t.Fatalf("the copy has %v, the store %v", copied, want)
		}
	})
}

// A flush is not taken back, and neither is what was changed before it, told or not.
// FORCE makes the two oldest calls of a full log one, which is taken back too.
func TestUndoOfForceOnAFullLog(t *testing.T) {
	s := store.New(store.Options{Journal: true})
	s.KeepUndo()
	l := mustParse(t, "2/1s,algo=log")
	decide := func(mode cell.Mode, nowNS int64) cell.Decision {
		calls := []store.Call{{Key: []byte("k"), Limit: &l}}
		if _, err := s.Take(calls, store.TakeOptions{Cost: 1, Mode: mode}, at(nowNS)); err != nil {
			t.Fatal(err)
		}
		return calls[0].Decision
	}
	decide(cell.Take, t0)
	decide(cell.Take, t0+second/2)
	drain(s, func(store.Change) {})
	s.Keep()
	now := t0 + second*9/10
	before := decide(cell.Peek, now)
	decide(cell.Force, now)
	s.Undo(now)
	if after := decide(cell.Peek, now); after != before {
		t.Errorf("was %+v, is %+v", before, after)
	}
}

func TestUndoAfterAFlush(t *testing.T) {
	for _, told := range []bool{false, true} {
		s := store.New(store.Options{Journal: true})
		mustPut(t, s, "a", live(t0, second), t0)
		s.KeepUndo()
		mustPut(t, s, "a", live(t0, 2*second), t0)
		if told {
			drain(s, func(store.Change) {})
		}
		s.Flush()
		mustPut(t, s, "b", live(t0, second), t0)
		drain(s, func(store.Change) {})
		s.Undo(t0)
		if got := contents(t, s, t0); len(got) != 0 {
			t.Errorf("told %v: %v is there", told, got)
		}
	}
}

// Commits of calls on keys that are there allocate nothing in the long run.
func TestUndoAllocatesNothing(t *testing.T) {
	s := store.New(store.Options{Shards: 4, Journal: true})
	s.KeepUndo()
	limit := mustLimit(t, 1<<30, 1, 1)
	var keys [100][]byte
	for i := range keys {
		keys[i] = fmt.Append(nil, "key ", i)
	}
	commit := func() {
		for range 3 {
			for _, key := range keys {
				mustAllow(t, s, key, limit, t0)
			}
		}
		drain(s, func(store.Change) {})
		s.Keep()
	}
	for range 10 {
		commit()
	}
	if n := testing.AllocsPerRun(100, commit); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is taken back finds its room again, in whatever order: nobody else goes for it.
func TestUndoInAFullStore(t *testing.T) {
	for _, noEviction := range []bool{false, true} {
		for range 20 { // the order is that of the shards
			s := store.New(store.Options{MaxKeys: 3, Shards: 16, NoEviction: noEviction, Journal: true})
			s.KeepUndo()
			for _, key := range []string{"a", "b", "c"} {
				mustPut(t, s, key, live(t0, second), t0)
			}
			drain(s, func(store.Change) {})
			s.Keep()
			s.Delete([]byte("a"), t0)
			mustTake(t, s, 1, t0, calls(t, "d", "5/1m,algo=log"))
			s.Delete([]byte("b"), t0)
			mustPut(t, s, "e", live(t0, second), t0)
			s.Undo(t0)
			expectKeys(t, s, t0, "a", "b", "c")
			mustAudit(t, s)
		}
	}
}

// A key that would have died since is not brought back to life.
func TestUndoOfWhatHasDied(t *testing.T) {
	s := store.New(store.Options{Journal: true})
	mustPut(t, s, "dying", store.State{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0)
	mustPut(t, s, "spent", plain, t0)
	mustTake(t, s, 1, t0, calls(t, "limits", "1/1s"))
	s.KeepUndo()
	for _, key := range []string{"dying", "spent", "limits"} {
		s.Delete([]byte(key), t0)
	}
	s.Undo(t0 + 2*second)
	expectKeys(t, s, t0+2*second, "spent")
	mustAudit(t, s)
}
