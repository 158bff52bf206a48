package shard_test

import (
	"celld/store/memory/memtest"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
)

// t0 is the instant at which most tests begin: 2023-11-14 22:13:20 UTC.
const (
	t0     int64 = 1_700_000_000_000_000_000
	second int64 = 1_000_000_000
	hour         = 3600 * second
)

func at(nowNS int64) store.Access { return store.Access{NowNS: nowNS} }

func untouched(nowNS int64) store.Access { return store.Access{NowNS: nowNS, NoTouch: true} }

// sweep removes all dead keys and returns how many there were.
func sweep(s *memory.Store, nowNS int64) (removed int64) {
	before := s.Stats(nowNS).Expired
	for s.Sweep(nowNS) {
	}
	return s.Stats(nowNS).Expired - before
}

// drain tells fn all changes.
func drain(s *memory.Store, fn func(memory.Change)) {
	for s.Drain(fn) {
	}
}

// withoutDead takes out of a copy what the store does not have any more, and nobody was told of because it has just died.
func withoutDead(copied, held map[string]store.Value, nowNS int64) map[string]store.Value {
	left := maps.Clone(copied)
	maps.DeleteFunc(left, func(key string, st store.Value) bool {
		_, there := held[key]
		return !there && (st.TAT <= uint64(nowNS) || st.ExpiryNS > 0 && st.ExpiryNS <= nowNS)
	})
	return left
}

// failer is what testing.TB and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// mustLimit's parameters are CL.THROTTLE's: mustLimit(t, 4, 1, 10) allows 5 at once and then one in 10 s.
func mustLimit(tb failer, maxBurst, count, period int64) cell.Bucket {
	tb.Helper()
	l, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// mustAllow is a call of quantity 1 that must pass.
func mustAllow(tb failer, s *memory.Store, key []byte, l cell.Bucket, nowNS int64) {
	if d, err := s.Throttle(key, l, 1, at(nowNS)); err != nil || d.Limited {
		tb.Helper()
		tb.Fatalf("%q: %+v, %v", key, d, err)
	}
}

// put stores a state, whatever was there.
func put(s *memory.Store, key string, st store.Value, nowNS int64) error {
	return s.Update([]byte(key), at(nowNS), func(store.Value, bool) (store.Value, store.Action) { return st, store.Put })
}

// live is a state that holds a limit until ttlNS after now.
func live(nowNS, ttlNS int64) store.Value { return store.Value{TAT: uint64(nowNS + ttlNS)} }

// plain is what SET key 5 puts: a value that is no time to come.
var plain = store.Value{TAT: 5, ExpiryNS: store.NoExpiry}

func mustPut(tb failer, s *memory.Store, key string, st store.Value, nowNS int64) {
	tb.Helper()
	if err := put(s, key, st, nowNS); err != nil {
		tb.Fatalf("put %q: %v", key, err)
	}
}

// contents scans the whole store, which must not change meanwhile.
func contents(tb failer, s *memory.Store, nowNS int64) map[string]store.Value {
	tb.Helper()
	got := map[string]store.Value{}
	for cursor, calls := uint64(0), 0; ; calls++ {
		cursor = s.Scan(cursor, 50, nowNS, func(key string, st store.Value) {
			if _, twice := got[key]; twice {
				tb.Fatalf("%q is delivered twice by a scan of a store that does not change", key)
			}
			got[key] = st
		})
		if cursor == 0 {
			return got
		}
		if calls > 1_000_000 {
			tb.Fatal("the scan does not end")
		}
	}
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// expectKeys says exactly which keys are live.
func expectKeys(tb failer, s *memory.Store, nowNS int64, want ...string) {
	tb.Helper()
	slices.Sort(want)
	if got := keysOf(contents(tb, s, nowNS)); !slices.Equal(got, want) {
		tb.Fatalf("keys are %q, want %q", got, want)
	}
	if got := s.Len(nowNS); got != len(want) {
		tb.Fatalf("Len is %d, want %d", got, len(want))
	}
}

// keys16 returns n distinct keys of 16 bytes.
func keys16(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "client:%09d", i)
	}
	return keys
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func mustParse(tb failer, text string) cell.Limit {
	tb.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// did is the answer to those who may do everything.
func did(done bool, err error) bool {
	if err != nil {
		panic(err)
	}
	return done
}

func mustAudit(tb failer, s *memory.Store) {
	tb.Helper()
	if err := memtest.Audit(&s.Shards); err != nil {
		tb.Fatal(err)
	}
}

// call is one of a Take.
func call(tb failer, key, limit string) store.Call {
	tb.Helper()
	l := mustParse(tb, limit)
	return store.Call{Key: []byte(key), Limit: &l}
}

func calls(tb failer, keysAndLimits ...string) (list []store.Call) {
	tb.Helper()
	for i := 0; i < len(keysAndLimits); i += 2 {
		list = append(list, call(tb, keysAndLimits[i], keysAndLimits[i+1]))
	}
	return list
}

func mustTake(tb failer, s *memory.Store, cost, nowNS int64, list []store.Call) store.Taken {
	tb.Helper()
	taken, err := s.Take(list, store.TakeOptions{Cost: cost}, at(nowNS))
	if err != nil {
		tb.Fatal(err)
	}
	return taken
}
