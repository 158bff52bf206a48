package shard_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
)

func TestEvictsTheLeastRecentlyUsedOfThoseSeenOnceFirst(t *testing.T) {
	limit := memtest.MustLimit(t, 0, 1, 3600)
	s := memory.New(memory.Options{MaxKeys: 3, Shards: 1}) // of them 2 protected
	for i, key := range []string{"a", "b", "c"} {
		memtest.MustAllow(t, s, []byte(key), limit, t0+int64(i))
	}
	s.Get([]byte("a"), memtest.At(t0+10))        // protected now; b is the oldest of the others
	s.Get([]byte("b"), memtest.Untouched(t0+11)) // and stays it
	memtest.MustAllow(t, s, []byte("d"), limit, t0+20)
	memtest.ExpectKeys(t, s, t0+20, "a", "c", "d")
	if _, err := s.Throttle([]byte("c"), limit, 1, memtest.At(t0+30)); err != nil { // limited, and a use: protected
		t.Fatal(err)
	}
	memtest.MustPut(t, s, "e", memtest.Live(t0, 3600*second), t0+40)
	memtest.ExpectKeys(t, s, t0+40, "a", "c", "e")
	s.Rename([]byte("e"), []byte("f"), memtest.At(t0+50)) // a use; now 3 are protected, and the oldest of them is a
	memtest.MustAllow(t, s, []byte("g"), limit, t0+60)    // so that falls back, and goes
	memtest.ExpectKeys(t, s, t0+60, "c", "f", "g")
	if st := s.Stats(t0); st.Evicted != 3 || st.Expired != 0 || st.Probation != 1 || st.Protected != 2 {
		t.Errorf("%+v, want 3 evicted, 1 on probation, 2 protected", st)
	}
}

// Up to 65,536 keys there is one shard unless told otherwise, so the order is exact.
func TestSmallStoresEvictInExactOrder(t *testing.T) {
	const n = 1 << 16
	s := memory.New(memory.Options{MaxKeys: n})
	keys := memtest.Keys16(n + 100)
	for i, key := range keys {
		memtest.MustPut(t, s, string(key), memtest.Live(t0, 3600*second), t0+int64(i))
	}
	for i, key := range keys {
		if _, ok := s.IdleNS(key, t0); ok != (i >= 100) {
			t.Fatalf("key %d there: %v", i, ok)
		}
	}
}

func TestWhoGivesRoom(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 3, Shards: shards})
			memtest.MustPut(t, s, "old", memtest.Live(t0, 3600*second), t0)
			memtest.MustPut(t, s, "count", memtest.Plain, t0)
			memtest.MustPut(t, s, "dying", memtest.Live(t0, second), t0)

			now := t0 + second
			memtest.MustPut(t, s, "new1", memtest.Live(now, 3600*second), now) // in the room of the dead one
			memtest.ExpectKeys(t, s, now, "count", "new1", "old")
			if st := s.Stats(now); st.Expired != 1 || st.Evicted != 0 {
				t.Fatalf("%+v, want 1 expired, none evicted", st)
			}
			memtest.MustPut(t, s, "new2", memtest.Live(now, 3600*second), now) // of a live one
			if got := s.Len(now); got != 3 {
				t.Fatalf("%d keys", got)
			}
			if st := s.Stats(now); st.Expired != 1 || st.Evicted != 1 {
				t.Fatalf("%+v, want 1 expired, 1 evicted", st)
			}
		})
	}
}

// Counts and limits go in one order.
func TestCountsGoInTheOrderOfTheirUse(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 4, Shards: 1})
	for _, key := range []string{"a", "b", "c"} {
		memtest.MustPut(t, s, key, memtest.Plain, t0)
	}
	memtest.MustPut(t, s, "live", memtest.Live(t0, second), t0)
	s.Get([]byte("a"), memtest.At(t0))
	s.Get([]byte("b"), memtest.Untouched(t0))
	for i, left := range [][]string{
		{"a", "c", "live", "new0"}, {"a", "live", "new0", "new1"}, {"a", "new0", "new1", "new2"}, {"a", "new1", "new2", "new3"},
	} {
		memtest.MustPut(t, s, fmt.Sprint("new", i), memtest.Live(t0, second), t0)
		memtest.ExpectKeys(t, s, t0, left...)
	}
}

// Which shard the dead key lies in makes no difference.
func TestADeadKeyAnywhereGivesItsRoom(t *testing.T) {
	const n = 64
	s := memory.New(memory.Options{MaxKeys: n, Shards: 16})
	now := t0
	for round := range 500 {
		memtest.MustPut(t, s, fmt.Sprint("dying", round), memtest.Live(now, 1), now)
		for i := s.Len(now); i < n; i++ {
			memtest.MustPut(t, s, fmt.Sprint(round, " ", i), memtest.Live(now, 3600*second), now)
		}
		now++
		memtest.MustPut(t, s, fmt.Sprint("new", round), memtest.Live(now, second/2), now)
		if st := s.Stats(now); st.Evicted != 0 || s.Len(now) != n {
			t.Fatalf("round %d: %+v, %d keys", round, st, s.Len(now))
		}
		now += second
	}
}

// A TAT that calls have moved on does not die at the end it had before them.
func TestAKeyThatLivesOnIsNotTakenForDead(t *testing.T) {
	limit := memtest.MustLimit(t, 100, 1, 1)
	s := memory.New(memory.Options{MaxKeys: 2})
	memtest.MustAllow(t, s, []byte("busy"), limit, t0) // ends at t0 + 1 s
	memtest.MustAllow(t, s, []byte("idle"), limit, t0)
	for range 9 {
		memtest.MustAllow(t, s, []byte("busy"), limit, t0) // ends at t0 + 10 s
	}
	now := t0 + 2*second
	if removed := memtest.Sweep(s, now); removed != 1 {
		t.Fatalf("swept %d", removed)
	}
	memtest.ExpectKeys(t, s, now, "busy")
	memtest.ExpectKeys(t, s, t0+10*second-1, "busy")
	memtest.ExpectKeys(t, s, t0+10*second)
}

func TestNoEviction(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			limit := memtest.MustLimit(t, 5, 1, 3600)
			s := memory.New(memory.Options{MaxKeys: 2, NoEviction: true, Shards: shards})
			memtest.MustAllow(t, s, []byte("a"), limit, t0)
			memtest.MustPut(t, s, "b", memtest.Live(t0, second), t0)
			refused := func(nowNS int64) {
				t.Helper()
				if _, err := s.Throttle([]byte("c"), limit, 1, memtest.At(nowNS)); !errors.Is(err, store.ErrFull) {
					t.Fatalf("Throttle of a new key: %v", err)
				}
				if err := memtest.Put(s, "c", memtest.Plain, nowNS); !errors.Is(err, store.ErrFull) {
					t.Fatalf("Put of a new key: %v", err)
				}
			}
			refused(t0)
			memtest.ExpectKeys(t, s, t0, "a", "b")
			memtest.MustAllow(t, s, []byte("a"), limit, t0) // one that is there needs no room
			for _, quantity := range []int64{0, 100, -1} {
				if _, err := s.Throttle([]byte("c"), limit, quantity, memtest.At(t0)); err != nil {
					t.Fatalf("quantity %d creates nothing, and yet: %v", quantity, err)
				}
			}
			if !memtest.Did(s.Rename([]byte("a"), []byte("a2"), memtest.At(t0))) {
				t.Fatal("a rename is refused")
			}
			memtest.MustPut(t, s, "c", memtest.Plain, t0+second) // b has expired
			memtest.ExpectKeys(t, s, t0+second, "a2", "c")
			if _, err := s.Throttle([]byte("d"), limit, 1, memtest.At(t0+second)); !errors.Is(err, store.ErrFull) {
				t.Fatalf("Throttle of a new key in the room of a count: %v", err)
			}
			memtest.ExpectKeys(t, s, t0+second, "a2", "c")
			if st := s.Stats(t0); st.Evicted != 0 || st.Expired != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestMaxBytes(t *testing.T) {
	const five = 5 * table.OverheadBytes
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := memory.New(memory.Options{MaxBytes: five, Shards: shards})
			for i := range 100 {
				memtest.MustPut(t, s, fmt.Sprintf("key %06d", i), memtest.Live(t0, second), t0)
				if got, want := s.Stats(t0).Bytes, int64(min(i+1, 5)*table.OverheadBytes); got != want {
					t.Fatalf("%d bytes after %d keys, want %d", got, i+1, want)
				}
			}
			if st := s.Stats(t0); s.Len(t0) != 5 || st.Evicted != 95 {
				t.Fatalf("%d keys, %+v", s.Len(t0), st)
			}
			memtest.MustPut(t, s, strings.Repeat("x", 17), memtest.Live(t0, second), t0) // 1 byte too many, so 2 go
			if got := s.Len(t0); got != 4+1-1 {
				t.Fatalf("%d keys with a longer one", got)
			}
			const longest = 12 + (five-table.OverheadBytes)/32*28
			memtest.MustPut(t, s, strings.Repeat("y", longest), memtest.Live(t0, second), t0)
			if got := s.Len(t0); got != 1 {
				t.Fatalf("%d keys with one that takes all", got)
			}
			before := memtest.Contents(t, s, t0)
			if err := memtest.Put(s, strings.Repeat("z", longest+1), memtest.Plain, t0); !errors.Is(err, store.ErrFull) {
				t.Fatalf("a key that never fits: %v", err)
			}
			memtest.ExpectKeys(t, s, t0, slices.Sorted(maps.Keys(before))...)
		})
	}
}

func TestMaxBytesBelowOneKey(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: 1})
	if _, err := s.Throttle([]byte("k"), memtest.MustLimit(t, 0, 1, 1), 1, memtest.At(t0)); !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	memtest.ExpectKeys(t, s, t0)
}

func TestRenameToALongerNameKeepsMaxBytes(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: 3 * table.OverheadBytes, Shards: 1})
	for _, key := range []string{"a", "b", "c"} {
		memtest.MustPut(t, s, key, memtest.Live(t0, second), t0)
	}
	long := strings.Repeat("a", 17)
	s.Rename([]byte("a"), []byte(long), memtest.At(t0))
	memtest.ExpectKeys(t, s, t0, long, "c")

	s = memory.New(memory.Options{MaxBytes: 3 * table.OverheadBytes, NoEviction: true})
	for _, key := range []string{"a", "b", "c"} {
		memtest.MustPut(t, s, key, memtest.Live(t0, second), t0)
	}
	s.Rename([]byte("a"), []byte(long), memtest.At(t0))
	s.Sweep(t0)
	memtest.ExpectKeys(t, s, t0, long, "b", "c")
}

func TestResize(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("shards=%d", shards), func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 10_000, Shards: shards})
			fill := func(n int) {
				for i := range n {
					memtest.MustPut(t, s, fmt.Sprintf("%06d", i), memtest.Live(t0, 3600*second), t0+int64(i))
				}
			}
			expect := func(keys int, evicted int64) {
				t.Helper()
				if st := s.Stats(t0); s.Len(t0) != keys || st.Evicted != evicted || st.Bytes != int64(keys*table.OverheadBytes) {
					t.Fatalf("%d keys, %+v; want %d, %d evicted", s.Len(t0), st, keys, evicted)
				}
			}
			fill(10_000)
			memtest.SetMaxKeys(&s.Capacity, 1000)
			expect(1000, 9000)
			if _, ok := s.IdleNS([]byte("009999"), t0); !ok {
				t.Error("the youngest key has gone")
			}
			memtest.SetMaxKeys(&s.Capacity, 2000)
			fill(3000)
			if got := s.Len(t0); got != 2000 {
				t.Fatalf("%d keys, want 2000", got)
			}
			memtest.SetMaxBytes(&s.Capacity, 500*table.OverheadBytes)
			expect(500, 12_500)
			memtest.SetMaxBytes(&s.Capacity, 0)
			memtest.SetMaxKeys(&s.Capacity, 0) // the default
			fill(3000)
			expect(3000, 12_500)

			memtest.SetNoEviction(&s.Capacity, true)
			memtest.SetMaxKeys(&s.Capacity, 100)
			expect(3000, 12_500)
			if err := memtest.Put(s, "new", memtest.Plain, t0); !errors.Is(err, store.ErrFull) {
				t.Fatal(err)
			}
			memtest.SetNoEviction(&s.Capacity, false)
			expect(100, 15_400)
		})
	}
}

// Shrinking knows the latest time a call has given: keys dead by then do not count as evicted.
func TestResizeTakesTheDeadFirst(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4})
	for i := range 100 {
		memtest.MustPut(t, s, fmt.Sprint("dead", i), memtest.Live(t0, second), t0)
		memtest.MustPut(t, s, fmt.Sprint("live", i), memtest.Live(t0, 60*second), t0)
	}
	s.Get([]byte("any"), memtest.At(t0+second))
	memtest.SetMaxKeys(&s.Capacity, 90)
	if st := s.Stats(t0); st.Expired != 100 || st.Evicted != 10 || s.Len(t0) != 90 {
		t.Fatalf("%+v, %d keys", st, s.Len(t0))
	}
}

// Nobody is evicted on the way from one set of limits to another.
func TestSetLimits(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range 1000 {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, second), t0)
	}
	for _, step := range []struct {
		maxKeys, maxBytes int64
		noEviction        bool
		want              int
	}{
		{10, 10, true, 1000}, {2000, 0, false, 1000}, {2000, 1, true, 1000}, {2000, 1 << 30, false, 1000},
		{100, 0, true, 1000}, {1000, 1 << 30, false, 1000}, {100, 0, false, 100},
	} {
		memtest.SetCapacityNow(&s.Capacity, step.maxKeys, step.maxBytes, step.noEviction)
		if got := s.Len(t0); got != step.want {
			t.Errorf("%+v: %d keys", step, got)
		}
		memtest.MustAudit(t, s)
	}
}

// What is above a limit that is lowered goes in short steps. Meanwhile a new key pushes another out, so that the store does not grow.
func TestLimitsAreLoweredInSteps(t *testing.T) {
	const keys, kept = 5000, 100
	for _, bytes := range []bool{false, true} {
		for _, shards := range []int{1, 16} {
			s := memory.New(memory.Options{Shards: shards})
			for i := range keys {
				memtest.MustPut(t, s, fmt.Sprintf("%08d", i), memtest.Live(t0, second), t0)
			}
			if bytes {
				s.SetCapacity(2*keys, kept*table.OverheadBytes, false)
			} else {
				s.SetCapacity(kept, 0, false)
			}
			steps := 0
			for more := true; more; steps++ {
				before := s.Len(t0)
				memtest.MustPut(t, s, fmt.Sprintf("new%05d", steps), memtest.Live(t0, second), t0)
				if after := s.Len(t0); after > before || before-after > 2 {
					t.Fatalf("%d keys, and %d after an insert", before, after)
				}
				more = s.Shrink()
				if gone := before - s.Len(t0); gone > 64+2 {
					t.Fatalf("%d keys went in one step", gone)
				}
			}
			if n := s.Len(t0); n != kept || steps < keys/66 {
				t.Errorf("%d keys are left after %d steps", n, steps)
			}
			memtest.MustAudit(t, s)
		}
	}
}

// An insert that comes while the store begins to evict together with a larger limit evicts nobody.
func TestAnInsertWhileLimitsAreRaised(t *testing.T) {
	const keys = 100
	s := memory.New(memory.Options{MaxKeys: keys + 1, Shards: 2, NoEviction: true})
	locked := "locked"
	memtest.MustPut(t, s, locked, memtest.Live(t0, second), t0)
	var names []string
	for i := 0; len(names) < keys+1; i++ {
		if name := fmt.Sprint(i); s.ShardOf(s.Hash([]byte(name))) != s.ShardOf(s.Hash([]byte(locked))) {
			names = append(names, name)
		}
	}
	last := names[keys]
	for _, name := range names[:keys] {
		memtest.MustPut(t, s, name, memtest.Live(t0, second), t0)
	}
	memtest.Sweep(s, t0) // so that no insert looks in the locked shard for what may be dead
	holds, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Update([]byte(locked), memtest.At(t0), func(st store.Value, _ bool) (store.Value, bool) {
			close(holds)
			<-release
			return st, false
		})
	}()
	<-holds
	go func() {
		memtest.SetCapacityNow(&s.Capacity, keys+50, 0, false)
		close(done)
	}()
	for memtest.Put(s, last, memtest.Live(t0, second), t0) != nil {
		runtime.Gosched()
	}
	close(release)
	<-done
	if st := s.Stats(t0); st.Evicted != 0 || s.Len(t0) != keys+2 {
		t.Errorf("%d keys, %+v", s.Len(t0), st)
	}
}
