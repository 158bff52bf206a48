package memtest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
)

// T0 is the instant at which most tests begin: 2023-11-14 22:13:20 UTC.
const T0 int64 = 1_700_000_000_000_000_000

// Plain is what SET key 5 puts: a count.
var Plain = store.Value{Count: 5, ExpiryNS: store.NoExpiry}

// At is the access of who may do everything.
func At(nowNS int64) store.Access { return store.Access{NowNS: nowNS} }

// Untouched is At for a command that does not touch the keys, such as one of a client that is under CLIENT NO-TOUCH.
func Untouched(nowNS int64) store.Access { return store.Access{NowNS: nowNS, NoTouch: true} }

// Live is a state that holds a limit until ttlNS after now.
func Live(nowNS, ttlNS int64) store.Value { return store.Value{TAT: uint64(nowNS + ttlNS)} }

// Failer is what testing.TB and *rapid.T have in common.
type Failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Sweep removes all dead keys and returns how many there were.
func Sweep(s *memory.Store, nowNS int64) (removed int64) {
	before := s.Stats(nowNS).Expired
	for s.Sweep(nowNS) {
	}
	return s.Stats(nowNS).Expired - before
}

// Drain tells fn all changes.
func Drain(s *memory.Store, fn func(memory.Change)) {
	for s.Drain(fn) {
	}
}

// WithoutDead takes out of a copy what the store does not have any more, and nobody was told of because it has just died.
func WithoutDead(copied, held map[string]store.Value, nowNS int64) map[string]store.Value {
	left := maps.Clone(copied)
	maps.DeleteFunc(left, func(key string, st store.Value) bool {
		_, there := held[key]
		return !there && (!st.IsCount() && st.TAT <= uint64(nowNS) || st.ExpiryNS > 0 && st.ExpiryNS <= nowNS)
	})
	return left
}

// MustLimit takes the parameters of CL.THROTTLE: MustLimit(t, 4, 1, 10) allows 5 at once and then one in 10 s.
func MustLimit(tb Failer, maxBurst, count, period int64) cell.Bucket {
	tb.Helper()
	l, err := cell.NewBucket(maxBurst, count, period)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// MustAllow is a call of quantity 1 that must pass.
func MustAllow(tb Failer, s *memory.Store, key []byte, l cell.Bucket, nowNS int64) {
	if d, err := s.Throttle(key, l, 1, At(nowNS)); err != nil || d.Limited {
		tb.Helper()
		tb.Fatalf("%q: %+v, %v", key, d, err)
	}
}

// Put stores a state, whatever was there.
func Put(s *memory.Store, key string, st store.Value, nowNS int64) error {
	return s.Update([]byte(key), At(nowNS), func(store.Value, bool) (store.Value, bool) { return st, true })
}

// MustPut is Put that must succeed.
func MustPut(tb Failer, s *memory.Store, key string, st store.Value, nowNS int64) {
	tb.Helper()
	if err := Put(s, key, st, nowNS); err != nil {
		tb.Fatalf("put %q: %v", key, err)
	}
}

// Contents scans the whole store, which must not change meanwhile.
func Contents(tb Failer, s *memory.Store, nowNS int64) map[string]store.Value {
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

// ExpectKeys says exactly which keys are live.
func ExpectKeys(tb Failer, s *memory.Store, nowNS int64, want ...string) {
	tb.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(Contents(tb, s, nowNS))); !slices.Equal(got, want) {
		tb.Fatalf("keys are %q, want %q", got, want)
	}
	if got := s.Len(nowNS); got != len(want) {
		tb.Fatalf("Len is %d, want %d", got, len(want))
	}
}

// Keys16 returns n distinct keys of 16 bytes.
func Keys16(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "client:%09d", i)
	}
	return keys
}

// HeapBytes returns how many bytes are in use once all garbage is collected.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// MustParse parses a limit, which must be one.
func MustParse(tb Failer, text string) cell.Limit {
	tb.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Did is the answer to those who may do everything.
func Did(done bool, err error) bool {
	if err != nil {
		panic(err)
	}
	return done
}

// MustAudit is Audit that must find nothing.
func MustAudit(tb Failer, s *memory.Store) {
	tb.Helper()
	if err := Audit(&s.Shards); err != nil {
		tb.Fatal(err)
	}
}

// Call is one of a Take.
func Call(tb Failer, key, limit string) store.Call {
	tb.Helper()
	l := MustParse(tb, limit)
	return store.Call{Key: []byte(key), Limit: &l}
}

// Calls are those of a Take: Calls(t, "a", "1/1s", "b", "2/1s").
func Calls(tb Failer, keysAndLimits ...string) (list []store.Call) {
	tb.Helper()
	for i := 0; i < len(keysAndLimits); i += 2 {
		list = append(list, Call(tb, keysAndLimits[i], keysAndLimits[i+1]))
	}
	return list
}

// MustTake is a Take that must not fail. It may be limited.
func MustTake(tb Failer, s *memory.Store, cost, nowNS int64, list []store.Call) store.Taken {
	tb.Helper()
	taken, err := s.Take(list, store.TakeOptions{Cost: cost}, At(nowNS))
	if err != nil {
		tb.Fatal(err)
	}
	return taken
}

// Drained tells the changes as text, in the order of their keys, with a flush first.
func Drained(s *memory.Store) string {
	var told []string
	Drain(s, func(c memory.Change) {
		switch {
		case c.Flush:
			told = append(told, "(flush)")
		case c.Deleted:
			told = append(told, "-"+string(c.Key))
		default:
			told = append(told, fmt.Sprintf("%s=%d", c.Key, int64(c.State.TAT)-T0))
		}
	})
	slices.SortFunc(told, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a, "-"), strings.TrimLeft(b, "-"))
	})
	return strings.Join(told, " ")
}

// Replay applies a change to a copy.
func Replay(copied map[string]store.Value, c memory.Change) {
	switch {
	case c.Flush:
		clear(copied)
	case c.Deleted:
		delete(copied, string(c.Key))
	default:
		copied[string(c.Key)] = c.State
	}
}

// LimitText is a limit and its state as text.
func LimitText(l *store.LimitState) string {
	return string(l.AppendName(nil)) + " " + string(l.Limit.AppendState(nil, &l.State))
}

// LimitTexts are limits of all kinds.
var LimitTexts = []string{
	"5/1s", "7/1s,burst=3", "5/1m", "5/1s,block=3s", "3/1s,shadow", "3/1s,shadow,block=2s", "2147483647/1h",
	"4/1s,algo=window", "6/1m,algo=window,align=clock", "9/minute,tz=+01:00,block=1s", "5/1s,algo=slide", "6/1s,algo=slide,buckets=3",
	"9/1s,algo=slide,buckets=3", "5/1s,algo=log", "40/1s,algo=log,block=500ms", "12/1m,algo=log",
	"5/1s,warmup=4s", "9/1s,warmup=1m,cold=7.5,block=2s", "9007199254740991/1s,algo=window", "9007199254740991/1s,algo=slide",
}
