package shard

import (
	"math"
	"runtime"
	"sync"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// A call without the lock and one with it, step by step, on a TAT and on a count.
func TestStepsWithoutTheLock(t *testing.T) {
	bucket, err := cell.NewBucket(2, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	key, a := []byte("k"), store.Access{NowNS: 1}
	s := New(Options{Shards: 1, Journal: true})
	if _, err := s.Throttle(key, bucket, 1, a); err != nil {
		t.Fatal(err)
	}
	stepsWithoutTheLock(t, s, key, a, table.FlagsOfState, 0)
	s = New(Options{Shards: 1, Journal: true})
	one := store.CountRequest{Key: key, Count: store.Count{Counter: cell.Unbounded(1)}}
	s.CountBatch([]store.CountRequest{one}, a, nil)
	stepsWithoutTheLock(t, s, key, a, table.FlagCount, table.FlagCount)
}

func stepsWithoutTheLock(t *testing.T, s *Store, key []byte, a store.Access, at, flags uint64) {
	sh := &s.All[0]
	look := func() *LockFree {
		t.Helper()
		f := &LockFree{Store: &s.Shards}
		if !f.look(sh, s.Hash(key), key, at, flags, a) {
			t.Fatal("a call needs the lock")
		}
		return f
	}
	f := look()
	sh.Lock(0)
	sh.Unlock()
	if f.valid() || f.begin() || f.e.Has(table.FlagBusy) {
		t.Error("a call goes on though the shard was locked")
	}
	f = look()
	sh.SetTouched(f.e, 1<<40)
	if f.begin() {
		t.Error("a call goes on though another word of its slot has changed")
	}
	for _, others := range []int{0, 1} {
		f = &LockFree{Store: &s.Shards}
		if f.look(sh, s.Hash(nil), nil, at, flags, a) {
			t.Fatal("a call on a key that is not there goes on")
		}
		for range others {
			sh.Lock(0)
			sh.Unlock()
		}
		sh.Lock(0)
		if absent := f.stillAbsent(sh); absent != (others == 0) {
			t.Errorf("a key was not there before %d calls: still absent: %v", others, absent)
		}
		if (&LockFree{Store: &s.Shards}).look(sh, s.Hash(key), key, at, flags, a) {
			t.Error("a call goes on though the shard is locked")
		}
		sh.Unlock()
	}
	for name, read := range map[string]func() uint64{
		"Get": func() uint64 { st, _ := s.Get(key, a); return st.TAT + uint64(st.Count) },
		"Drain": func() (held uint64) {
			for s.Drain(func(c Change) { held = c.State.TAT + uint64(c.State.Count) }) {
			}
			return held
		},
	} {
		if f = look(); !f.begin() {
			t.Fatal("a call does not go on")
		}
		if other := (&LockFree{Store: &s.Shards}); other.look(sh, s.Hash(key), key, at, flags, a) {
			t.Error("two calls are busy with a slot")
		}
		version, got := sh.Version.Load(), make(chan uint64)
		go func() { got <- read() }()
		for sh.Version.Load() == version {
			runtime.Gosched()
		}
		for range 1000 { // of the other one's turns
			runtime.Gosched()
		}
		want := f.tat + 7
		f.e.TAT.Store(want)
		f.changed()
		if tat := <-got; tat != want {
			t.Errorf("%s reads %d, want %d", name, tat, want)
		}
		f.done(s.Hash(key), key, a)
	}
}

// The fewer keys there is room for, the sooner their uses are noted.
func TestWhenUsesAreNoted(t *testing.T) {
	const all, key = math.MinInt64, table.OverheadBytes
	for _, tt := range []struct{ maxKeys, maxBytes, noteNS int64 }{
		{1, 0, all}, {exactKeys, 0, all}, {exactKeys + 1, 0, 40_970_000}, {10_000, 0, 100_000_000}, {1_000_000, 0, 1_073_740_000},
		{1_000_000, exactKeys * key, all}, {1_000_000, 10_000 * key, 100_000_000}, {10_000, 1 << 40, 100_000_000},
		{math.MaxInt64, 0, 1_073_740_000},
	} {
		s := New(Options{})
		s.SetLimitsNow(tt.maxKeys, tt.maxBytes, false)
		for i := range s.All {
			if got := s.All[i].noteNS.Load(); got != tt.noteNS {
				t.Errorf("%d keys, %d bytes: noted after %d ns, want %d", tt.maxKeys, tt.maxBytes, got, tt.noteNS)
			}
		}
	}
	s, a, key1 := New(Options{Shards: 1}), store.Access{NowNS: 1 << 60}, []byte("k")
	bucket, err := cell.NewBucket(1000, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	count := []store.CountRequest{{Key: []byte("count"), Count: store.Count{Counter: cell.Unbounded(1)}}}
	for _, use := range []struct {
		afterNS  int64
		noTouch  bool
		idleNote int64 // since when the last use is noted
	}{{0, false, 0}, {0, false, 0}, {1_073_739_999, false, 0}, {1_073_740_000, true, 0}, {1_073_740_000, false, 1_073_740_000}} {
		at := store.Access{NowNS: a.NowNS + use.afterNS, NoTouch: use.noTouch}
		_, _ = s.Throttle(key1, bucket, 1, at)
		s.CountBatch(count, at, nil)
		for _, key := range [][]byte{key1, count[0].Key} {
			idle, _ := s.IdleNS(key, at.NowNS)
			if want := use.afterNS - use.idleNote; idle < want || idle > want+1<<16 {
				t.Errorf("%s, %+v: idle for %d ns", key, use, idle)
			}
		}
	}
}

// Two callers pass under one key all they can. Where one has read a TAT that the other changes, it does not store its own.
func TestTwoPassAtOnce(t *testing.T) {
	const turns, most = 1 << 18, 1 << 30
	bucket, err := cell.NewBucket(most-1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Shards: 1})
	pass := func() cell.Decision {
		d, _ := s.Throttle([]byte("k"), bucket, 1, store.Access{NowNS: 1})
		return d
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range turns {
				pass()
			}
		})
	}
	wg.Wait()
	if left := pass().Remaining; left != most-2*turns-1 {
		t.Errorf("%d are left, want %d", left, most-2*turns-1)
	}
}
