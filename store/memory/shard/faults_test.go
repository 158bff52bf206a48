package shard_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/memory"
)

// holdLease takes from a key and holds it as a lease.
func holdLease(t *testing.T, s *memory.Store, key, limit string, cost, leaseNS int64) (id int64) {
	t.Helper()
	terms := &store.Terms{LeaseNS: leaseNS}
	if taken, err := s.Take(calls(t, key, limit), store.TakeOptions{Cost: cost, Terms: terms}, at(t0)); err != nil || taken.Limited {
		t.Fatal(taken, err)
	}
	return terms.Lease
}

// When its last lease has ended, what has held it is gone, and the log from which it was taken is told as a whole.
func TestACompanionThatIsEmptyGoes(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1, Journal: true})
	const limit = "5/1h,algo=log"
	mustTake(t, s, 1, t0, calls(t, "k", limit))
	before := s.Stats(t0).Bytes
	known := func() (known bool) {
		drain(s, func(c memory.Change) { known = (*c.State.Limits)[0].Told.Known() })
		return known
	}
	known()
	mustTake(t, s, 1, t0, calls(t, "k", limit))
	if !known() {
		t.Error("a log that only grows is told as a whole")
	}
	id := holdLease(t, s, "k", limit, 2, second)
	known()
	if !did(s.Settle([]byte("k"), id, 2, at(t0))) {
		t.Fatal("not settled")
	}
	limits := 0
	if _, err := s.Limits([]byte("k"), at(t0), func(*store.LimitState) { limits++ }); err != nil || limits != 1 || s.Stats(t0).Bytes < before {
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
		if err := put(s, "new", live(t0, second), t0); err != store.ErrFull {
			t.Errorf("%d shards: %v", shards, err)
		}
		if err := put(s, "new", live(t0+61*second, second), t0+61*second); err != nil || s.Stats(t0).Evicted != 1 {
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
			mustPut(t, s, "before", live(t0, 1000), t0)
			expired = sweep(s, t0+1000)
		}
		for i := range int64(5) {
			mustPut(t, s, fmt.Sprint(i), live(t0, 10+i), t0)
		}
		mustPut(t, s, "new", live(t0, hour), t0+100)
		if st := s.Stats(t0 + 100); st.Expired != expired+1 || st.Evicted != 0 {
			t.Errorf("late %v: %+v", late, st)
		}
		if n := sweep(s, t0+100); n != 4 {
			t.Errorf("late %v: %d are left to sweep", late, n)
		}
	}
}

// Each look-up of limits counts once, also where a call takes the lock.
func TestLookupsOfLimits(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	const limit = "5/1h,algo=log"
	mustTake(t, s, 1, t0, calls(t, "k", limit)) // a miss
	for range 3 {
		mustTake(t, s, 1, t0, calls(t, "k", limit))
	}
	if st := s.Stats(t0); st.Hits != 3 || st.Misses != 1 {
		t.Errorf("%d hits and %d misses of takes", st.Hits, st.Misses)
	}
	for _, key := range []string{"k", "none"} {
		_, _ = s.Limits([]byte(key), at(t0), func(*store.LimitState) {})
	}
	if st := s.Stats(t0); st.Hits != 4 || st.Misses != 2 {
		t.Errorf("%d hits and %d misses in all", st.Hits, st.Misses)
	}
	if err := put(s, "t", live(t0, second), t0); err != nil {
		t.Fatal(err)
	}
	if there, err := s.Limits([]byte("t"), at(t0), nil); !there || err != store.ErrWrongType {
		t.Errorf("limits of a key that holds none: %v, %v", there, err)
	}
}
