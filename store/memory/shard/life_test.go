package shard_test

import (
	"errors"
	"math"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// Each state is put at t0, and lives until just before its end: 0 is never there, forever never ends.
func TestWhenAKeyDies(t *testing.T) {
	const forever = math.MaxInt64
	tests := []struct {
		name  string
		state store.Value
		endNS int64
	}{
		{"as its TAT", memtest.Live(t0, second), t0 + second},
		{"as a TAT of the next instant", memtest.Live(t0, 1), t0 + 1},
		{"as a TAT of now: it has passed", memtest.Live(t0, 0), 0},
		{"TAT past", store.Value{TAT: 5, ExpiryNS: store.NoExpiry}, 0},
		{"a count that lives as its TAT", store.Value{}, 0},
		{"persisted: with its TAT all the same", store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0 + second},
		{"expiry before TAT", store.Value{TAT: uint64(t0 + 2*second), ExpiryNS: t0 + second}, t0 + second},
		{"expiry after TAT", store.Value{TAT: uint64(t0 + second), ExpiryNS: t0 + 2*second}, t0 + second},
		{"expiry now", store.Value{TAT: uint64(t0 + second), ExpiryNS: t0}, 0},
		{"expiry past", store.Value{TAT: uint64(t0 + second), ExpiryNS: 1}, 0},
		{"expiry before 1970", store.Value{TAT: uint64(t0 + second), ExpiryNS: -2}, 0},
		{"a count, no expiry", memtest.Plain, forever},
		{"the lowest count, no expiry", store.Value{Count: math.MinInt64, ExpiryNS: store.NoExpiry}, forever},
		{"the highest count, no expiry", store.Value{Count: math.MaxInt64, ExpiryNS: store.NoExpiry}, forever},
		{"a count with expiry", store.Value{Count: -5, ExpiryNS: t0 + second}, t0 + second},
		{"a count with expiry past", store.Value{Count: 5, ExpiryNS: t0}, 0},
		{"TAT past int64", store.Value{TAT: math.MaxUint64}, forever},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			memtest.MustPut(t, s, "k", tt.state, t0)
			if tt.endNS == 0 {
				memtest.ExpectKeys(t, s, t0)
				return
			}
			if st, ok := s.Get([]byte("k"), memtest.At(tt.endNS-1)); !ok || st != tt.state {
				t.Fatalf("just before its end: %+v, %v; want %+v", st, ok, tt.state)
			}
			memtest.ExpectKeys(t, s, tt.endNS-1, "k")
			if tt.endNS == forever {
				return
			}
			if st, ok := s.Get([]byte("k"), memtest.At(tt.endNS)); ok {
				t.Fatalf("at its end: %+v", st)
			}
			memtest.ExpectKeys(t, s, tt.endNS)
		})
	}
}

// A dead key is absent for every method, though nothing has removed it yet.
func TestADeadKeyIsAbsentForAll(t *testing.T) {
	k, now := []byte("k"), t0+second
	methods := map[string]func(s *memory.Store) bool{ // true: the key was seen
		"Get":    func(s *memory.Store) bool { _, ok := s.Get(k, memtest.At(now)); return ok },
		"Delete": func(s *memory.Store) bool { return s.Delete(k, now) },
		"Rename": func(s *memory.Store) bool { return memtest.Did(s.Rename(k, []byte("to"), memtest.At(now))) },
		"self":   func(s *memory.Store) bool { return memtest.Did(s.Rename(k, k, memtest.At(now))) },
		"IdleNS": func(s *memory.Store) bool { _, ok := s.IdleNS(k, now); return ok },
		"Len":    func(s *memory.Store) bool { return s.Len(now) != 0 },
		"Random": func(s *memory.Store) bool { _, ok := s.Random(now); return ok },
		"Scan":   func(s *memory.Store) bool { return len(memtest.Contents(t, s, now)) != 0 },
		"Update": func(s *memory.Store) (seen bool) {
			_ = s.Update(k, memtest.At(now), func(_ store.Value, ok bool) (store.Value, bool) {
				seen = ok
				return store.Value{}, false
			})
			return seen
		},
		"Throttle": func(s *memory.Store) bool {
			d, _ := s.Throttle(k, memtest.MustLimit(t, 4, 1, 1), 0, memtest.At(now))
			return d.Remaining != 5
		},
	}
	for name, sees := range methods {
		t.Run(name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			memtest.MustPut(t, s, "k", memtest.Live(t0, second), t0)
			if sees(s) {
				t.Error("sees a dead key")
			}
			s.Len(now)
			if st := s.Stats(now); st.Expired != 1 || st.Evicted != 0 || st.WithExpiry != 0 || st.Bytes != 0 {
				t.Errorf("removed not as expired: %+v", st)
			}
		})
	}
}

func TestThrottleStores(t *testing.T) {
	limit := memtest.MustLimit(t, 1, 1, 1) // 2 at once, 1 a second
	state := func(ttlNS int64) *store.Value { st := memtest.Live(t0, ttlNS); return &st }
	tests := []struct {
		name     string
		before   *store.Value // nil: absent
		quantity int64
		limited  bool
		after    *store.Value
	}{
		{"a new key", nil, 1, false, state(second)},
		{"a key that is there", state(second), 1, false, state(2 * second)},
		{"limited: nothing", state(2 * second), 1, true, state(2 * second)},
		{"limited: creates nothing", nil, 3, true, nil},
		{"a peek: nothing", state(second), 0, false, state(second)},
		{"a peek creates nothing", nil, 0, false, nil},
		{"a refund", state(2 * second), -1, false, state(second)},
		{"a refund to full deletes", state(second), -1, false, nil},
		{"a refund past full deletes", state(second), -5, false, nil},
		{"a refund creates nothing", nil, -1, false, nil},
		{"resets PERSIST", &store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, 1, false, state(2 * second)},
		{"resets EXPIRE", &store.Value{TAT: uint64(t0 + second), ExpiryNS: t0 + 100}, 1, false, state(2 * second)},
		{
			"limited leaves EXPIRE", &store.Value{TAT: uint64(t0 + 2*second), ExpiryNS: t0 + 100}, 1, true,
			&store.Value{TAT: uint64(t0 + 2*second), ExpiryNS: t0 + 100},
		},
		{
			"a peek leaves PERSIST", &store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, 0, false,
			&store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry},
		},
		{"a count is no debt", &memtest.Plain, 2, false, state(2 * second)},
		{"a count above all TATs is no debt", &store.Value{Count: math.MaxInt64, ExpiryNS: store.NoExpiry}, 2, false, state(2 * second)},
		{"a negative count is no debt", &store.Value{Count: -1, ExpiryNS: t0 + 100}, 2, false, state(2 * second)},
		{"a count is no debt: limited leaves it", &memtest.Plain, 3, true, &memtest.Plain},
		{"a peek leaves a count", &memtest.Plain, 0, false, &memtest.Plain},
		{"a refund deletes a count", &memtest.Plain, -1, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			if tt.before != nil {
				memtest.MustPut(t, s, "k", *tt.before, t0)
			}
			d, err := s.Throttle([]byte("k"), limit, tt.quantity, memtest.At(t0))
			if err != nil || d.Limited != tt.limited {
				t.Fatalf("limited %v, %v; want %v", d.Limited, err, tt.limited)
			}
			st, ok := s.Get([]byte("k"), memtest.At(t0))
			switch {
			case tt.after == nil && ok:
				t.Fatalf("key has %+v, want none", st)
			case tt.after != nil && (!ok || st != *tt.after):
				t.Fatalf("key has %+v, %v; want %+v", st, ok, *tt.after)
			}
		})
	}
}

// Callers read their clocks before they wait for a lock, so time may seem to go back by a little.
func TestACountIsNoDebtEvenABitEarlier(t *testing.T) {
	s := memory.New(memory.Options{})
	memtest.MustPut(t, s, "k", store.Value{Count: t0, ExpiryNS: store.NoExpiry}, t0)
	d, err := s.Throttle([]byte("k"), memtest.MustLimit(t, 0, 1, 1), 0, memtest.At(t0-10))
	if err != nil || d.Remaining != 1 || d.ResetAfterNS != 0 {
		t.Errorf("%+v, %v; want a full key", d, err)
	}
}

func TestThrottleOutOfRangeChangesNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	limit := memtest.MustLimit(t, 5, 1, 60)
	for _, existing := range []bool{false, true} {
		if existing {
			memtest.MustPut(t, s, "k", store.Value{TAT: uint64(t0 + second), ExpiryNS: t0 + 100}, t0)
		}
		for _, quantity := range []int64{math.MaxInt64, math.MinInt64} {
			_, err := s.Throttle([]byte("k"), limit, quantity, memtest.At(t0))
			if re := (*cell.RangeError)(nil); !errors.As(err, &re) || re.Param != "quantity" {
				t.Fatalf("quantity %d: %v", quantity, err)
			}
		}
		if st, ok := s.Get([]byte("k"), memtest.At(t0)); ok != existing || ok && st.ExpiryNS != t0+100 {
			t.Fatalf("key has %+v, %v", st, ok)
		}
	}
}

// A put makes a count a TAT, and a TAT a count.
func TestPutDecidesAnewBetweenCountAndTAT(t *testing.T) {
	s := memory.New(memory.Options{})
	memtest.MustPut(t, s, "k", memtest.Plain, t0)
	memtest.MustPut(t, s, "k", store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0)
	memtest.ExpectKeys(t, s, t0+second-1, "k")
	memtest.ExpectKeys(t, s, t0+second)

	memtest.MustPut(t, s, "k", store.Value{TAT: uint64(t0 + second), ExpiryNS: store.NoExpiry}, t0)
	memtest.MustPut(t, s, "k", memtest.Plain, t0)
	memtest.ExpectKeys(t, s, t0+1000*second, "k")
}

func TestUpdate(t *testing.T) {
	first, second, deletes := memtest.Live(t0, 1000), memtest.Live(t0, 2000), store.Value{}
	tests := []struct {
		name   string
		before *store.Value
		put    *store.Value
		after  *store.Value
	}{
		{"leave absent", nil, nil, nil},
		{"leave present", &first, nil, &first},
		{"put new", nil, &second, &second},
		{"put over", &first, &second, &second},
		{"delete absent", nil, &deletes, nil},
		{"delete present", &first, &deletes, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			if tt.before != nil {
				memtest.MustPut(t, s, "k", *tt.before, t0)
			}
			calls := 0
			err := s.Update([]byte("k"), memtest.At(t0), func(old store.Value, ok bool) (store.Value, bool) {
				calls++
				if ok != (tt.before != nil) || ok && old != *tt.before {
					t.Errorf("given %+v, %v", old, ok)
				}
				if tt.put == nil {
					return second, false
				}
				return *tt.put, true
			})
			if err != nil || calls != 1 {
				t.Fatalf("%v, fn called %d times", err, calls)
			}
			st, ok := s.Get([]byte("k"), memtest.At(t0))
			if ok != (tt.after != nil) || ok && st != *tt.after {
				t.Fatalf("key has %+v, %v", st, ok)
			}
		})
	}
}

func TestRename(t *testing.T) {
	for _, shards := range []int{1, 64} { // with 64, most of the pairs below lie in two shards
		s := memory.New(memory.Options{Shards: shards})
		for _, from := range []string{"a", "b", "c", "d", ""} {
			to := from + "2"
			for _, st := range []store.Value{memtest.Live(t0, second), memtest.Plain, {TAT: uint64(t0 + 2*second), ExpiryNS: t0 + second}} {
				memtest.MustPut(t, s, from, st, t0)
				memtest.MustPut(t, s, to, memtest.Live(t0, 77), t0)
				if !memtest.Did(s.Rename([]byte(from), []byte(to), memtest.At(t0))) {
					t.Fatalf("rename %q: no such key", from)
				}
				if got, ok := s.Get([]byte(to), memtest.At(t0)); !ok || got != st {
					t.Fatalf("renamed %q has %+v, %v; want %+v", from, got, ok, st)
				}
				memtest.ExpectKeys(t, s, t0, to)
				if memtest.Did(s.Rename([]byte(from), []byte(to), memtest.At(t0))) {
					t.Fatalf("rename %q again: true", from)
				}
				if !memtest.Did(s.Rename([]byte(to), []byte(to), memtest.At(t0))) {
					t.Fatalf("rename %q to itself: false", to)
				}
				memtest.ExpectKeys(t, s, t0, to)
				if st != memtest.Plain {
					memtest.ExpectKeys(t, s, t0+second)
				}
				s.Flush()
			}
		}
	}
}

func TestKeysAreBytes(t *testing.T) {
	s := memory.New(memory.Options{})
	limit := memtest.MustLimit(t, 0, 1, 60)
	for _, key := range []string{"", "\x00", "\xff\xfe", "a\r\nb", string(make([]byte, 100_000))} {
		caller := []byte(key)
		memtest.MustAllow(t, s, caller, limit, t0)
		for i := range caller { // the caller's buffer is its own again
			caller[i] = 'x'
		}
		if _, ok := s.Get([]byte(key), memtest.At(t0)); !ok {
			t.Errorf("%.10q is not there", key)
		}
	}
	if _, ok := s.Get(nil, memtest.At(t0)); !ok {
		t.Error("nil is not the empty key")
	}
}

// idleAsNoted allows for the unit in which the last use is kept, 65 µs.
func idleAsNoted(ns, wantNS int64) bool { return ns >= wantNS && ns < wantNS+1<<16 }

func TestIdleAndTouch(t *testing.T) {
	k := []byte("k")
	limit := memtest.MustLimit(t, 0, 1, 3600)
	leave := func(store.Value, bool) (store.Value, bool) { return store.Value{}, false }
	uses := map[string]func(s *memory.Store, a store.Access){
		"Get":                  func(s *memory.Store, a store.Access) { s.Get(k, a) },
		"Update that leaves":   func(s *memory.Store, a store.Access) { _ = s.Update(k, a, leave) },
		"Throttle that limits": func(s *memory.Store, a store.Access) { _, _ = s.Throttle(k, limit, 1, a) },
		"a peek":               func(s *memory.Store, a store.Access) { _, _ = s.Throttle(k, limit, 0, a) },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			s := memory.New(memory.Options{})
			if _, ok := s.IdleNS(k, t0); ok {
				t.Fatal("an absent key has an idle time")
			}
			memtest.MustAllow(t, s, k, limit, t0)
			idle := func(nowNS, wantNS int64) {
				t.Helper()
				if ns, ok := s.IdleNS(k, nowNS); !ok || !idleAsNoted(ns, wantNS) {
					t.Fatalf("idle for %d ns, %v; want %d", ns, ok, wantNS)
				}
			}
			idle(t0+second, second)
			idle(t0-second, 0) // a caller whose clock is behind
			use(s, memtest.Untouched(t0+2*second))
			idle(t0+3*second, 3*second)
			use(s, memtest.At(t0+4*second))
			idle(t0+5*second, second)
		})
	}
}
