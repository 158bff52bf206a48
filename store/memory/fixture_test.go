package memory_test

import (
	"celld/store/memory/memtest"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

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

// drained tells the changes as text, in the order of their keys, with a flush first.
func drained(s *memory.Store) string {
	var told []string
	drain(s, func(c memory.Change) {
		switch {
		case c.Flush:
			told = append(told, "(flush)")
		case c.Deleted:
			told = append(told, "-"+string(c.Key))
		default:
			told = append(told, fmt.Sprintf("%s=%d", c.Key, int64(c.State.TAT)-t0))
		}
	})
	slices.SortFunc(told, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a, "-"), strings.TrimLeft(b, "-"))
	})
	return strings.Join(told, " ")
}

// replay applies a change to a copy.
func replay(copied map[string]store.Value, c memory.Change) {
	switch {
	case c.Flush:
		clear(copied)
	case c.Deleted:
		delete(copied, string(c.Key))
	default:
		copied[string(c.Key)] = c.State
	}
}

// limitText is a limit and its state as text.
func limitText(l *store.LimitState) string {
	return string(l.AppendName(nil)) + " " + string(l.Limit.AppendState(nil, &l.State))
}

// readLimits reads all that a state has.
func readLimits(st store.Value) {
	for i := 0; st.Limits != nil && i < len(*st.Limits); i++ {
		limitText(&(*st.Limits)[i])
	}
}

// limitTexts are limits of all kinds.
var limitTexts = []string{
	"5/1s", "7/1s,burst=3", "5/1m", "5/1s,block=3s", "3/1s,shadow", "3/1s,shadow,block=2s", "2147483647/1h",
	"4/1s,algo=window", "6/1m,algo=window,align=clock", "9/minute,tz=+01:00,block=1s", "5/1s,algo=slide", "6/1s,algo=slide,buckets=3",
	"9/1s,algo=slide,buckets=3", "5/1s,algo=log", "40/1s,algo=log,block=500ms", "12/1m,algo=log",
	"5/1s,warmup=4s", "9/1s,warmup=1m,cold=7.5,block=2s",
}
