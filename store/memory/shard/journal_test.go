package shard_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

func TestJournal(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s := memory.New(memory.Options{MaxKeys: 3, Shards: shards, Journal: true})
		limit := memtest.MustLimit(t, 1, 1_000_000_000, 50) // 50 ns each, 2 at once
		throttle := func(quantity int64) { _, _ = s.Throttle([]byte("a"), limit, quantity, memtest.At(t0)) }
		put := func(key string, ttlNS int64) { memtest.MustPut(t, s, key, memtest.Live(t0, ttlNS), t0) }
		steps := []struct {
			name string
			do   func()
			want string
		}{
			{"nothing", func() {}, ""},
			{"put", func() { put("a", 1); put("b", 2) }, "a=1 b=2"},
			{"nothing again", func() {}, ""},
			{"put twice", func() { put("a", 3); put("a", 4) }, "a=4"},
			{"reads", func() { s.Get([]byte("a"), memtest.At(t0)); s.Len(t0); throttle(0); throttle(3) }, ""},
			{"a call", func() { throttle(1) }, "a=54"},
			{"a refund", func() { throttle(-1) }, "a=4"},
			{"a refund to full", func() { throttle(-1) }, "-a"},
			{"deleted", func() { s.Delete([]byte("b"), t0) }, "-b"},
			{"deleted again", func() { s.Delete([]byte("b"), t0) }, ""},
			{"created and deleted", func() { put("a", 1); s.Delete([]byte("a"), t0) }, "-a"},
			{"deleted and created", func() { put("a", 1); s.Delete([]byte("a"), t0); put("a", 2) }, "a=2"},
			{"and again and again", func() {
				for i := range int64(10) {
					s.Delete([]byte("a"), t0)
					put("a", 3+i)
				}
			}, "a=12"},
			{"renamed", func() { s.Rename([]byte("a"), []byte("b"), memtest.At(t0)) }, "-a b=12"},
			{"renamed there and back", func() {
				s.Rename([]byte("b"), []byte("a"), memtest.At(t0))
				s.Rename([]byte("a"), []byte("b"), memtest.At(t0))
			}, "-a b=12"},
			{"expired, not removed", func() { s.Get([]byte("x"), memtest.At(t0+12)) }, ""},
			{"expired and removed", func() { s.Sweep(t0 + 12) }, ""},
			{"changed, expired and removed", func() { put("b", 12); memtest.Sweep(s, t0+12) }, "-b"},
			{"put as over", func() { put("c", 9); put("c", 0) }, "-c"},
			{"flush", func() { put("a", 1); s.Flush() }, "(flush)"},
			{"flush of nothing", func() { s.Flush(); s.Flush() }, "(flush)"},
			{"flush and then", func() { put("a", 1); put("b", 2); s.Flush(); put("b", 3) }, "(flush) b=3"},
			{"shrunk", func() {
				put("b", 30)
				put("c", 40)
				memtest.SetMaxKeys(&s.Capacity, 1)
				s.Delete([]byte("c"), t0)
				s.Delete([]byte("b"), t0)
			}, "-b -c"},
			{"evicted", func() { put("d", 1); put("e", 2) }, "-d e=2"},
		}
		for _, step := range steps {
			step.do()
			if got := memtest.Drained(s); got != step.want {
				t.Fatalf("shards=%d, %s: %q, want %q", shards, step.name, got, step.want)
			}
		}
	}
}

func TestAKeyIsToldOnce(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	limit := memtest.MustLimit(t, 1<<30, 1, 1)
	for range 100_000 {
		memtest.MustAllow(t, s, []byte("k"), limit, t0)
	}
	if got, want := memtest.Drained(s), fmt.Sprintf("k=%d", 100_000*second); got != want {
		t.Errorf("%.100q, want %q", got, want)
	}
}

func TestJournalOff(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 10})
	for i := range 1000 {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Plain, t0)
	}
	s.Flush()
	memtest.MustPut(t, s, "k", memtest.Plain, t0)
	if got := memtest.Drained(s); got != "" {
		t.Error(got)
	}
	before := memtest.HeapBytes()
	for i := range 100_000 {
		memtest.MustPut(t, s, fmt.Sprint("a key that comes and goes ", i%1000), memtest.Live(t0, second), t0)
	}
	if grown := memtest.HeapBytes() - before; grown > 1<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	s.Flush()
}

// The store changes while it is drained, in all ways and at any point; after one more Drain the copy is true.
func TestChangesDuringADrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{MaxKeys: 400, Shards: rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "shards"), Journal: true})
		key := func() string { return fmt.Sprint(rapid.IntRange(0, 500).Draw(t, "key")) }
		change := func() {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0, 1, 2:
				memtest.MustPut(t, s, key(), memtest.Live(t0, rapid.Int64Range(1, 1000).Draw(t, "ttl")), t0)
			case 3, 4, 5:
				s.Delete([]byte(key()), t0)
			case 6, 7:
				s.Rename([]byte(key()), []byte(key()), memtest.At(t0))
			case 8:
				memtest.SetMaxKeys(&s.Capacity, int64(rapid.IntRange(200, 400).Draw(t, "maxKeys")))
			default:
				if rapid.IntRange(0, 9).Draw(t, "flush") == 0 {
					s.Flush()
				}
			}
		}
		copied := map[string]store.Value{}
		for range 3 {
			for i := range rapid.IntRange(0, 450).Draw(t, "keys") {
				memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, 1000), t0)
			}
			for s.Drain(func(c memory.Change) { memtest.Replay(copied, c) }) {
				for range rapid.IntRange(0, 3).Draw(t, "changes") {
					change()
				}
			}
		}
		memtest.Drain(s, func(c memory.Change) { memtest.Replay(copied, c) })
		if want := memtest.Contents(t, s, t0); !maps.Equal(copied, want) {
			t.Fatalf("the copy has %d keys, the store %d, or other states", len(copied), len(want))
		}
	})
}

// What more is removed than is remembered is told as lost; memory stays bounded.
func TestRemovalsThatNobodyAsksFor(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	for i := range 100_000 {
		memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, second), t0)
		s.Delete(fmt.Append(nil, i), t0)
	}
	deleted, lost := 0, 0
	count := func(c memory.Change) {
		switch {
		case c.Lost:
			lost++
		case c.Deleted:
			deleted++
		}
	}
	memtest.Drain(s, count)
	if lost != 1 || deleted < 10_000 || deleted > 20_000 {
		t.Errorf("%d told as deleted, %d times that some are lost", deleted, lost)
	}
	deleted, lost = 0, 0
	s.Delete([]byte("no such key"), t0)
	memtest.Drain(s, count)
	if lost+deleted != 0 {
		t.Error("told again")
	}
}

// A key that comes and goes all the time takes no more room than one that goes once.
func TestAKeyThatComesAndGoes(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	for range 100_000 {
		memtest.MustPut(t, s, "k", memtest.Live(t0, second), t0)
		s.Delete([]byte("k"), t0)
	}
	if got := memtest.Drained(s); got != "-k" {
		t.Error(got)
	}
}

// A call ends an EXPIRE, and all of a log is told then: whoever reads what was told before, after that expiry, has no such key
// that what is new could be added to.
func TestALogIsToldAnewWhenItsExpiryEnds(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	told := func() (known bool, expiry int64) {
		t.Helper()
		times := 0
		memtest.Drain(s, func(c memory.Change) {
			times++
			known, expiry = (*c.State.Limits)[0].Told.Known(), c.State.ExpiryNS
		})
		if times != 1 {
			t.Fatalf("told %d times", times)
		}
		return known, expiry
	}
	take := func(nowNS int64) { memtest.MustTake(t, s, 1, nowNS, memtest.Calls(t, "k", "100/1h,algo=log")) }
	take(t0)
	if known, _ := told(); known {
		t.Error("a new log is told as one that is known")
	}
	take(t0 + 1)
	if known, _ := told(); !known {
		t.Error("all of a log is told for a call more")
	}
	for _, expiry := range []int64{t0 + 9*second, store.NoExpiry} {
		if err := s.Update([]byte("k"), memtest.At(t0+2), func(st store.Value, _ bool) (store.Value, bool) {
			return store.Value{TAT: st.TAT, ExpiryNS: expiry, HoldsLimits: st.HoldsLimits}, true
		}); err != nil {
			t.Fatal(err)
		}
		if _, got := told(); got != expiry {
			t.Errorf("expires at %d, want %d", got, expiry)
		}
		take(t0 + 3)
		if known, got := told(); known || got != store.AtTAT {
			t.Errorf("after a call: known %v, expires at %d", known, got)
		}
		take(t0 + 4)
		if known, _ := told(); !known {
			t.Error("all of a log is told for a call more, when its expiry has ended")
		}
	}
}

// What is told at once is what the store holds then, whatever had been told before. Where it is more than may be told, a later call tells
// the rest.
func TestDrainAtOnce(t *testing.T) {
	if !memory.New(memory.Options{}).DrainAtOnce(0, nil) {
		t.Error("without a journal there are changes")
	}
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{Shards: rapid.SampledFrom([]int{1, 8}).Draw(t, "shards"), Journal: true})
		copied := map[string]store.Value{}
		told := 0
		replay := func(c memory.Change) {
			told++
			memtest.Replay(copied, c)
		}
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			for range rapid.IntRange(0, 40).Draw(t, "changes") {
				key := fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "key"))
				switch rapid.IntRange(0, 20).Draw(t, "change") {
				case 0:
					s.Flush()
				case 1, 2, 3, 4:
					s.Delete([]byte(key), t0)
				default:
					memtest.MustPut(t, s, key, memtest.Live(t0, rapid.Int64Range(1, 1000).Draw(t, "ttl")), t0)
				}
			}
			for range rapid.IntRange(0, 5).Draw(t, "parts") {
				s.Drain(replay)
			}
			most := rapid.Int64Range(1, 4000).Draw(t, "most")
			told = 0
			if s.DrainAtOnce(most, replay) {
				if want := memtest.Contents(t, s, t0); !maps.Equal(copied, want) {
					t.Fatalf("the copy has %d keys, the store %d, or other states", len(copied), len(want))
				}
			} else if least := int(most) / 200; told < least {
				t.Fatalf("%d keys are told, though %d bytes may be", told, most)
			}
		}
		if !s.DrainAtOnce(1<<20, replay) || !maps.Equal(copied, memtest.Contents(t, s, t0)) {
			t.Fatal("the rest is not told")
		}
	})
}

// A copy of a full store, to which changes are applied, never holds more keys than the store: what was removed is told before what came.
func TestACopyOfAFullStoreHasRoom(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 1000, Shards: 8, Journal: true})
	copied := map[string]store.Value{}
	for n := range 5000 {
		memtest.MustPut(t, s, fmt.Sprint(n), memtest.Live(t0, second), t0)
		if n%1000 < 999 {
			continue
		}
		memtest.Drain(s, func(c memory.Change) {
			if memtest.Replay(copied, c); len(copied) > 1000 {
				t.Fatalf("the copy has %d keys", len(copied))
			}
		})
	}
	if want := memtest.Contents(t, s, t0); !maps.Equal(copied, want) {
		t.Errorf("the copy has %d keys, the store %d, or other states", len(copied), len(want))
	}
}
