package shard_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"

	"pgregory.net/rapid"
)

// Keys of both kinds come, go, expire, are evicted and renamed over others between the steps of a scan; those
// that stay are all delivered.
func TestScanDeliversAllThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxKeys := rapid.IntRange(1, 200).Draw(t, "maxKeys")
		s := memory.New(memory.Options{MaxKeys: int64(maxKeys), Shards: rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"),
			Journal: rapid.Bool().Draw(t, "journal")})
		now, names := t0, 0
		insert := func() {
			names++
			ttl := rapid.SampledFrom([]int64{2, 20, second, second, second}).Draw(t, "ttl")
			if ttl == second && rapid.Bool().Draw(t, "limits") {
				s.Delete([]byte(fmt.Sprint(names)), now) // a rename may have come before
				memtest.MustTake(t, s, 1, now, memtest.Calls(t, fmt.Sprint(names), "9/1s,algo=log", fmt.Sprint(names), "9/1m"))
				return
			}
			memtest.MustPut(t, s, fmt.Sprint(names), memtest.Live(now, ttl), now)
		}
		for range rapid.IntRange(0, 250).Draw(t, "keys") {
			insert()
		}
		stay := memtest.Contents(t, s, now)
		ever, delivered := map[string]bool{}, map[string]bool{}
		for key := range stay {
			ever[key] = true
		}
		some := func() string { return fmt.Sprint(rapid.IntRange(1, names+1).Draw(t, "some")) }
		change := func(gone map[string]bool) {
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0, 1:
				insert()
				ever[fmt.Sprint(names)] = true
			case 2:
				s.Delete([]byte(some()), now)
			case 3, 4, 5:
				from, to := some(), some()
				if memtest.Did(s.Rename([]byte(from), []byte(to), memtest.At(now))) {
					ever[to] = true
				}
			default:
				now += rapid.Int64Range(0, 3).Draw(t, "ns")
			}
			for key := range stay {
				if _, ok := s.IdleNS([]byte(key), now); !ok {
					gone[key] = true
				}
			}
		}

		for cursor, steps := uint64(0), 0; cursor != 0 || steps == 0; steps++ {
			if steps > 10_000 {
				t.Fatal("the scan does not end")
			}
			count, got := rapid.SampledFrom([]int{-1, 0, 1, 2, 10, 100}).Draw(t, "count"), 0
			cursor = s.Scan(cursor, count, now, func(key string, st store.Value) {
				if st.TAT <= uint64(now) {
					t.Fatalf("%q is dead", key)
				}
				delivered[key] = true
				got++
			})
			if got > max(count, 1) || cursor >= 1<<53 {
				t.Fatalf("%d keys for count %d, cursor %d", got, count, cursor)
			}
			gone := map[string]bool{}
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				change(gone)
			}
			memtest.Drain(s, func(memory.Change) {})
			for key := range stay {
				if _, ok := s.IdleNS([]byte(key), now); !ok || gone[key] {
					delete(stay, key)
				}
			}
		}
		memtest.MustAudit(t, s)
		for key := range stay {
			if !delivered[key] {
				t.Fatalf("%q was there all the time and was not delivered", key)
			}
		}
		for key := range delivered {
			if !ever[key] {
				t.Fatalf("%q never was there", key)
			}
		}
	})
}

func TestScanLenAndRandomAgree(t *testing.T) {
	for _, shards := range []int{1, 16, 1024} {
		s := memory.New(memory.Options{Shards: shards})
		if key, ok := s.Random(t0); ok || s.Len(t0) != 0 || s.Scan(0, 10, t0, nil) != 0 {
			t.Fatalf("an empty store has %q, %d keys", key, s.Len(t0))
		}
		for i := range int64(1000) {
			memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, (i+1)*second), t0)
		}
		for _, now := range []int64{t0, t0 + 500*second, t0 + 999*second, t0 + 1000*second} {
			held := memtest.Contents(t, s, now)
			if got, want := s.Len(now), int(1000-(now-t0)/second); got != want || len(held) != want {
				t.Fatalf("Len %d, scanned %d, want %d", got, len(held), want)
			}
			for range 1000 {
				key, ok := s.Random(now)
				if _, there := held[key]; ok != there {
					t.Fatalf("random %q, %v", key, ok)
				}
			}
		}
	}
}

func TestRandomIsUniform(t *testing.T) {
	const n, draws = 30, 60_000
	s := memory.New(memory.Options{Shards: 8})
	for i := range n {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Plain, t0)
	}
	drawn := map[string]int{}
	for range draws {
		key, _ := s.Random(t0)
		drawn[key]++
	}
	for key, times := range drawn { // 2,000 expected, with a standard deviation of 44
		if times < 1700 || times > 2300 {
			t.Errorf("%q was drawn %d times", key, times)
		}
	}
	if len(drawn) != n {
		t.Errorf("%d keys were drawn", len(drawn))
	}
}

// fn may use the store, which would hang if a lock were held.
func TestScanHoldsNoLock(t *testing.T) {
	s := memory.New(memory.Options{Shards: 2})
	for i := range 500 {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Plain, t0)
	}
	delivered := 0
	for cursor := uint64(0); ; {
		cursor = s.Scan(cursor, 1000, t0, func(key string, _ store.Value) {
			delivered++
			s.Delete([]byte(key), t0)
		})
		if cursor == 0 {
			break
		}
	}
	if delivered != 500 || s.Len(t0) != 0 {
		t.Errorf("%d delivered, %d left", delivered, s.Len(t0))
	}
}

func FuzzScanCursor(f *testing.F) {
	var stores []*memory.Store
	for _, shards := range []int{1, 16, 1024} {
		full := memory.New(memory.Options{Shards: shards})
		for i := range 300 {
			memtest.MustPut(f, full, fmt.Sprint(i), memtest.Plain, t0)
		}
		stores = append(stores, full, memory.New(memory.Options{Shards: shards}))
	}
	for _, power := range []int{0, 1, 31, 32, 33, 36, 41, 42, 53, 63} {
		for _, cursor := range []uint64{1<<power - 1, 1 << power, 1<<power + 1, ^uint64(0) << power} {
			f.Add(cursor, 10)
			f.Add(cursor, 1<<62)
		}
	}
	f.Fuzz(func(t *testing.T, cursor uint64, count int) {
		for _, s := range stores {
			delivered := 0
			next := s.Scan(cursor, count, t0, func(string, store.Value) { delivered++ })
			if delivered > max(count, 1) || delivered > 300 || next >= 1<<53 {
				t.Fatalf("%d delivered, next %d", delivered, next)
			}
			for calls := 0; next != 0; calls++ { // and from there it ends
				if calls > 2000 {
					t.Fatal("the scan does not end")
				}
				next = s.Scan(next, 1, t0, func(string, store.Value) {})
			}
		}
	})
}

// Places that keys have left count as looked at, so a step over them delivers no more than was asked for.
func TestAScanOverEmptyPlaces(t *testing.T) {
	s := memory.New(memory.Options{Shards: 8})
	keys := memtest.Keys16(40_000)
	for _, key := range keys {
		memtest.MustPut(t, s, string(key), memtest.Plain, t0)
	}
	for i, key := range keys {
		if i%8000 >= 200 {
			s.Delete(key, t0)
		}
	}
	for _, count := range []int{1, 10, 50, 100, 300} {
		delivered := map[string]bool{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			got := 0
			cursor = s.Scan(cursor, count, t0, func(key string, _ store.Value) {
				delivered[key] = true
				got++
			})
			if got > count {
				t.Fatalf("%d keys of %d", got, count)
			}
		}
		if len(delivered) != 1000 {
			t.Errorf("%d keys by %d", len(delivered), count)
		}
	}
}
