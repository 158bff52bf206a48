package shard_test

import (
	"errors"
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// holdLease takes from a key and holds it as a lease.
func holdLease(t *testing.T, s *memory.Store, key, limit string, cost, leaseNS int64) (id int64) {
	t.Helper()
	terms := &store.Terms{LeaseNS: leaseNS}
	if taken, err := s.Take(memtest.Calls(t, key, limit), store.TakeOptions{Cost: cost, Terms: terms}, memtest.At(t0)); err != nil ||
		taken.Limited {
		t.Fatal(taken, err)
	}
	return terms.Lease
}

// When its last lease has ended, what has held it is gone, and the log from which it was taken is told as a whole.
func TestACompanionThatIsEmptyGoes(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	const limit = "5/1h,algo=log"
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
	before := s.Stats(t0).Bytes
	known := func() (known bool) {
		memtest.Drain(s, func(c memory.Change) { known = (*c.State.Limits)[0].Told.Known() })
		return known
	}
	known()
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
	if !known() {
		t.Error("a log that only grows is told as a whole")
	}
	id := holdLease(t, s, "k", limit, 2, second)
	known()
	if !memtest.Did(s.Settle([]byte("k"), id, 2, memtest.At(t0))) {
		t.Fatal("not settled")
	}
	limits := 0
	if _, err := s.Limits([]byte("k"), memtest.At(t0), func(*store.LimitState) { limits++ }); err != nil || limits != 1 ||
		s.Stats(t0).Bytes < before {
		t.Errorf("%d limits are left, %v", limits, err)
	}
	if known() {
		t.Error("the lease stays in the files")
	}
}

// Where all keys hold leases none is evicted, and one more is refused; one without makes room.
func TestOnlyLeasedKeysMakeNoRoom(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s := memory.New(memory.Options{Shards: shards, MaxKeys: 20})
		for i := range 20 {
			holdLease(t, s, fmt.Sprint(i), "5/1h", 1, 60*second)
		}
		if err := memtest.Put(s, "new", memtest.Live(t0, second), t0); !errors.Is(err, store.ErrFull) {
			t.Errorf("%d shards: %v", shards, err)
		}
		if err := memtest.Put(s, "new", memtest.Live(t0+61*second, second), t0+61*second); err != nil || s.Stats(t0).Evicted != 1 {
			t.Errorf("%d shards, when the leases have ended: %v, %d evicted", shards, err, s.Stats(t0).Evicted)
		}
	}
}

// An insert removes one dead key for its room and no more, also of those that came with a clock that was behind.
func TestAnInsertRemovesOneDeadKey(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := memory.New(memory.Options{Shards: 1, MaxKeys: 5})
		expired := int64(0)
		if late {
			memtest.MustPut(t, s, "before", memtest.Live(t0, 1000), t0)
			expired = memtest.Sweep(s, t0+1000)
		}
		for i := range int64(5) {
			memtest.MustPut(t, s, fmt.Sprint(i), memtest.Live(t0, 10+i), t0)
		}
		memtest.MustPut(t, s, "new", memtest.Live(t0, hour), t0+100)
		if st := s.Stats(t0 + 100); st.Expired != expired+1 || st.Evicted != 0 {
			t.Errorf("late %v: %+v", late, st)
		}
		if n := memtest.Sweep(s, t0+100); n != 4 {
			t.Errorf("late %v: %d are left to sweep", late, n)
		}
	}
}

// Each look-up of limits counts once, also where a call takes the lock.
func TestLookupsOfLimits(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	const limit = "5/1h,algo=log"
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit)) // a miss
	for range 3 {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
	}
	if st := s.Stats(t0); st.Hits != 3 || st.Misses != 1 {
		t.Errorf("%d hits and %d misses of takes", st.Hits, st.Misses)
	}
	for _, key := range []string{"k", "none"} {
		_, _ = s.Limits([]byte(key), memtest.At(t0), func(*store.LimitState) {})
	}
	if st := s.Stats(t0); st.Hits != 4 || st.Misses != 2 {
		t.Errorf("%d hits and %d misses in all", st.Hits, st.Misses)
	}
	if err := memtest.Put(s, "t", memtest.Live(t0, second), t0); err != nil {
		t.Fatal(err)
	}
	if there, err := s.Limits([]byte("t"), memtest.At(t0), nil); !there || err != store.ErrWrongType {
		t.Errorf("limits of a key that holds none: %v, %v", there, err)
	}
}

// When a lease has flowed back its key ends sooner, and is swept then.
func TestAKeyEndsSoonerWhenALeaseFlowsBack(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "5/1h"))
	holdLease(t, s, "k", "5/1h", 3, 10*second)
	holdLease(t, s, "lease only", "5/1h", 1, 10*second)
	memtest.Drain(s, func(memory.Change) {})
	if st, ok := s.Get([]byte("k"), memtest.At(t0+9*second)); !ok || st.TAT != uint64(t0+4*720*second) || s.Changed() != 0 {
		t.Errorf("before it ends: %+v, %v; %d changes", st, ok, s.Changed())
	}
	if st, ok := s.Get([]byte("k"), memtest.At(t0+10*second)); !ok || st.TAT != uint64(t0+720*second) || s.Changed() != 1 {
		t.Errorf("when it ends: %+v, %v; %d changes", st, ok, s.Changed())
	}
	if _, ok := s.Get([]byte("lease only"), memtest.At(t0+10*second)); ok {
		t.Error("a key of which all has flowed back is there")
	}
	if !s.SweepDue(t0 + 720*second) {
		t.Error("the store does not know of the end")
	}
	if n := memtest.Sweep(s, t0+720*second); n != 1 || s.Len(t0+720*second) != 0 {
		t.Errorf("%d are swept", n)
	}
	memtest.MustAudit(t, s)
}

// Limits that are lowered below what must stay are in force all the same.
func TestLimitsBelowWhatMustStay(t *testing.T) {
	s := memory.New(memory.Options{Shards: 4, MaxKeys: 1000, MaxBytes: 1 << 20})
	for i := range 200 {
		holdLease(t, s, fmt.Sprint(i), "5/1h", 1, 60*second)
	}
	s.SetCapacity(150, 5000, false)
	for s.Shrink() { //nolint:revive // it does all
	}
	if n, most := s.Len(t0), s.MaxBytes(); n != 200 || most != 5000 {
		t.Errorf("%d keys are there, and %d bytes may be", n, most)
	}
	if err := memtest.Put(s, "new", memtest.Live(t0, second), t0); !errors.Is(err, store.ErrFull) {
		t.Errorf("a new key: %v", err)
	}
	for s.Sweep(t0 + 61*second) { //nolint:revive // it does all
	}
	if n, bytes := s.Len(t0+61*second), s.Stats(t0+61*second).Bytes; n > 150 || n == 0 || bytes > 5000 {
		t.Errorf("when the leases have ended, %d keys of %d bytes are there", n, bytes)
	}
}

// Slots of keys that have come and gone give their memory back when their changes are told.
func TestToldSlotsGiveTheirMemoryBack(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	keys := memtest.Keys16(5000)
	for _, key := range keys {
		memtest.MustPut(t, s, string(key), memtest.Live(t0, second), t0)
	}
	for _, key := range keys {
		s.Delete(key, t0)
	}
	memtest.Drain(s, func(memory.Change) {})
	if there := s.All[0].Slabs.FreePlaces.There; there > 2 {
		t.Errorf("%d slabs are there, of no keys", there)
	}
}

// Each call of a semaphore has a lease of its own, with an ID above the others, whether it asks for the ID or not.
func TestEachCallHasItsLease(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	last := uint64(0)
	for n := 1; n <= 3; n++ {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "5/1m,algo=conc"))
		if _, err := s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) {
			if id := l.State.Leases().HighestID(); id <= last || l.State.Leases().Len() != n {
				t.Errorf("call %d has lease %d of %d, after %d", n, id, l.State.Leases().Len(), last)
			} else {
				last = id
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a lease, what it was taken for and did not cost is given back, and no more.
func TestWhatALeaseGivesBack(t *testing.T) {
	for _, limit := range []string{"9/1h", "9/1h,algo=log", "9/1h,algo=window", "9/hour", "9/1h,algo=slide"} {
		for cost, left := range map[int64]int64{0: 8, 2: 6, 4: 4, 6: 2} {
			s := memory.New(memory.Options{Shards: 1})
			memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit))
			id := holdLease(t, s, "k", limit, 4, 60*second)
			look := memtest.Calls(t, "k", limit)
			if !memtest.Did(s.Settle([]byte("k"), id, cost, memtest.At(t0))) ||
				memtest.Did(s.Settle([]byte("k"), id, cost, memtest.At(t0))) {
				t.Errorf("%s: a lease is not settled once", limit)
			}
			_, err := s.Take(look, store.TakeOptions{Mode: cell.Peek}, memtest.At(t0))
			if err != nil || look[0].Decision.Remaining != left {
				t.Errorf("%s: of a cost of %d, %d are left, want %d; %v", limit, cost, look[0].Decision.Remaining, left, err)
			}
			memtest.MustAudit(t, s)
		}
	}
}
