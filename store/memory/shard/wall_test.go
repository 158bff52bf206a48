package shard_test

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// Whatever is told after the wall clock was set is told in the new wall time, also of keys that were renamed before.
func TestExportAfterTheWallClockWasSet(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	const keys = 3000
	for i := range keys {
		memtest.MustPut(t, s, fmt.Sprint("k", i), memtest.Live(t0, 2*hour), t0)
	}
	told := 0
	tell := func(wantNS int64) func([]byte, store.Value) {
		return func(key []byte, st store.Value) {
			if told++; int64(st.TAT) != wantNS {
				t.Fatalf("%s until %d, want %d", key, st.TAT, wantNS)
			}
		}
	}
	p, more := s.Export(s.StartExport(), t0, tell(t0+2*hour))
	for i := range keys {
		s.Rename(fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "renamed%d", i), memtest.At(t0))
	}
	s.SetWall(t0+hour, t0)
	for more {
		p, more = s.Export(p, t0, tell(t0+3*hour))
	}
	s.EndExport(p)
	if told < keys {
		t.Errorf("%d keys of %d", told, keys)
	}
}

// A key that expires by the wall clock is swept when that says so.
func TestSweepAfterTheWallClockWasSet(t *testing.T) {
	for _, by := range []int64{hour, -hour, 900 * hour} {
		s := memory.New(memory.Options{})
		_ = s.Update([]byte("k"), memtest.At(t0), func(store.Value, bool) (store.Value, bool) {
			return store.Value{TAT: uint64(t0 + 9000*hour), ExpiryNS: t0 + 1000*hour}, true
		})
		s.SetWall(t0+by, t0)
		end := t0 + 1000*hour - by
		if n := memtest.Sweep(s, end-1); n != 0 {
			t.Errorf("by %d: %d swept before its end", by, n)
		}
		if n := memtest.Sweep(s, end); n != 1 {
			t.Errorf("by %d: %d swept at its end", by, n)
		}
	}
}

// A key whose limits are over by the time that the wall clock is set to is no key to a rename that comes before SetWall has reached it.
func TestRenameBeforeSetWallReachesTheKey(t *testing.T) {
	for _, there := range []bool{false, true} {
		s := memory.New(memory.Options{})
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "from", "9/minute"))
		if there {
			memtest.MustPut(t, s, "to", memtest.Live(t0, hour), t0)
		}
		s.Wall.Store(hour) // as SetWall begins
		if memtest.Did(s.Rename([]byte("from"), []byte("to"), memtest.At(t0))) {
			t.Error("it is renamed")
		}
		s.Wall.Store(0)
		s.SetWall(t0+hour, t0)
		memtest.MustAudit(t, s)
		if n := s.Len(t0); there != (n == 1) || n > 1 {
			t.Errorf("%d keys", n)
		}
	}
}

// BenchmarkSetWall is how long all wait while the wall clock is set, with a million keys.
func BenchmarkSetWall(b *testing.B) {
	s := memory.New(memory.Options{MaxKeys: 1 << 20})
	literal, err := cell.ParseLimit("100/1h")
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		key := fmt.Appendf(nil, "key:%d", i)
		if i%2 == 0 {
			memtest.MustPut(b, s, string(key), memtest.Live(t0, hour), t0)
		} else if _, err := s.Take([]store.Call{{Key: key, Limit: &literal}}, store.TakeOptions{Cost: 1}, memtest.At(t0)); err != nil {
			b.Fatal(err)
		}
	}
	for i := int64(0); b.Loop(); i++ {
		s.SetWall(t0+i*second, t0)
	}
}

var algorithms = []string{
	"100/1h", "100/1h,algo=window", "100/1h,algo=window,align=clock,block=10m", "100/day,tz=+05:30,block=3h", "100/day,tz=Asia/Beirut",
	"100/1h,algo=slide", "100/1h,algo=slide,buckets=2", "100/1h,algo=log",
}

// limitsOf is what a key shows.
func limitsOf(tb testing.TB, s *memory.Store, key string, nowNS int64) (text string) {
	tb.Helper()
	_, err := s.Limits([]byte(key), memtest.Untouched(nowNS), func(l *store.LimitState) { text += memtest.LimitText(l) + "; " })
	if err != nil {
		tb.Fatal(err)
	}
	st, ok := s.Get([]byte(key), memtest.Untouched(nowNS))
	return fmt.Sprint(text, st.TAT, ok)
}

// A policy whose windows become those of the clock, or of another zone, and back keeps what is used up so, however far the wall time is
// from the limits'.
func TestALimitOfTheClockAndBackGainsNothing(t *testing.T) {
	for text, nexts := range map[string][]string{
		"100/1h,algo=window":                       {"50/1h,algo=window,align=clock,tz=+00:30", "70/1h,algo=window,align=clock"},
		"100/1h,algo=window,align=clock,tz=-00:15": {"50/1h,algo=window", "70/1h,algo=window,align=clock"},
		"100/day,tz=+05:30":                        {"50/day", "70/day,tz=-03:00"},
		"100/day,tz=Asia/Kolkata":                  {"50/day,tz=America/New_York", "70/day"},
	} {
		for _, ahead := range []int64{0, 1, second / 2, hour - 1, -1, -hour / 2, -hour} {
			s := memory.New(memory.Options{})
			s.SetWall(t0+ahead, t0)
			policy := func(text string) store.Call {
				if ok, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, text)}, policy.Options{}); !ok || err != nil {
					t.Fatal(ok, err)
				}
				p := s.PolicyNamed("p")
				return store.CallOf([]byte("k"), p.Limits[0])
			}
			memtest.MustTake(t, s, 100, t0, []store.Call{policy(text)})
			for _, next := range []string{nexts[0], text, nexts[1], text} {
				c := []store.Call{policy(next)}
				_, err := s.Take(c, store.TakeOptions{Cost: 1, Mode: cell.Peek}, memtest.At(t0))
				if err != nil || c[0].Decision.Remaining > 0 {
					t.Errorf("%s, %d ns ahead, then %s: %+v, %v", text, ahead, next, c[0].Decision, err)
				}
			}
		}
	}
}

// What is read from a key and written to it again leaves it as it is, and what it holds beside that.
func TestFieldsWrittenAgainChangeNothing(t *testing.T) {
	for _, text := range algorithms {
		for _, ahead := range []int64{0, 1, second / 2, hour - 1, -1, -hour / 2, -hour, -5*hour - 1} {
			s := memory.New(memory.Options{})
			s.SetWall(t0+ahead, t0)
			memtest.MustTake(t, s, 60, t0, memtest.Calls(t, "k", text, "k", "99/1m"))
			want := limitsOf(t, s, "k", t0)
			for range 3 {
				var fields []store.Field
				if _, err := s.Limits([]byte("k"), memtest.Untouched(t0), func(l *store.LimitState) {
					f, err := s.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
					if err != nil {
						t.Fatal(err)
					}
					fields = append(fields, f)
				}); err != nil {
					t.Fatal(err)
				}
				if len(fields) != 2 {
					t.Fatalf("%s, %d ns ahead: %d fields", text, ahead, len(fields))
				}
				if _, err := s.PutFields([]byte("k"), fields[:1], true, memtest.At(t0)); err != nil {
					t.Fatal(err)
				}
			}
			if got := limitsOf(t, s, "k", t0); got != want {
				t.Errorf("%s, %d ns ahead: %s, want %s", text, ahead, got, want)
			}
		}
	}
}

// A rule's end is told and taken in wall time, and holds for as long, whatever that is.
func TestTheEndOfARuleInWallTime(t *testing.T) {
	for _, ahead := range []int64{0, hour, -hour} {
		s := memory.New(memory.Options{})
		s.SetWall(t0+ahead, t0)
		if _, err := s.PutRule(policy.Rule{Deny: true, Pattern: "k", UntilNS: t0 + 5*second}, t0); err != nil {
			t.Fatal(err)
		}
		setting := policy.Setting{Kind: policy.RuleSetting, Name: "DENY - k"}
		text, ok := s.SettingText(setting)
		if want := fmt.Sprint((t0 + ahead + 5*second) / 1_000_000); !ok || text != want {
			t.Errorf("%d ns ahead: %q, %v, want %s", ahead, text, ok, want)
		}
		s.DeleteSetting(setting, t0)
		if err := s.PutSetting(setting, text, t0); err != nil {
			t.Fatal(err)
		}
		for _, after := range []int64{0, 5*second - 1, 5 * second} {
			if taken := memtest.MustTake(t, s, 1, t0+after, memtest.Calls(t, "k", "9/1h")); taken.Limited != (after < 5*second) {
				t.Errorf("%d ns ahead, after %d ns: %+v", ahead, after, taken)
			}
		}
	}
}
