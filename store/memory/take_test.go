package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
	"celld/store/policy"
)

// count is how many limits a key shows.
func count(s *memory.Store, key string, nowNS int64) (n int) {
	_, _ = s.Limits([]byte(key), memtest.At(nowNS), func(*store.LimitState) { n++ })
	return n
}

// A key holds 128 limits. More are refused, by Take as by PutFields, until some of them have nothing left to remember.
func TestTooManyLimits(t *testing.T) {
	s := memory.New(memory.Options{})
	limit := func(i int) string { return fmt.Sprintf("1/%ds", i+1) }
	for i := range store.MaxLimits {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", limit(i)))
	}
	memtest.MustTake(t, s, 0, t0, memtest.Calls(t, "other", "1/1s", "k", limit(5)))
	for _, list := range [][]store.Call{memtest.Calls(t, "k", "1/1h"), memtest.Calls(t, "k", limit(0), "k", "1/1h"),
		memtest.Calls(t, "other", "1/1s", "k", "1/1h")} {
		if _, err := s.Take(list, store.TakeOptions{Cost: 1}, memtest.At(t0)); err != store.ErrTooManyLimits {
			t.Errorf("%v", err)
		}
	}
	parsed, err := s.ParseField("gcra/1h", fmt.Sprintf("limit=1/1h tat=%d", t0+second))
	if err != nil {
		t.Fatal(err)
	}
	if added, err := s.PutFields([]byte("k"), []store.Field{parsed}, true, memtest.At(t0)); err != store.ErrTooManyLimits || added != 0 {
		t.Errorf("%d, %v", added, err)
	}
	if given, err := s.Give([]byte("k"), memtest.Call(t, "", "1/1h").Limit, nil, 1, memtest.At(t0)); given != 0 || err != nil {
		t.Errorf("%d, %v", given, err)
	}
	if n := count(s, "k", t0); n != store.MaxLimits {
		t.Errorf("%d limits", n)
	}
	// Those of 1 and 2 s are over, and one of them is asked for itself.
	if got := memtest.MustTake(t, s, 1, t0+2*second, memtest.Calls(t, "k", limit(0), "k", "1/1h")); got.Limited {
		t.Errorf("%+v", got)
	}
	if n := count(s, "k", t0+2*second); n != store.MaxLimits {
		t.Errorf("%d limits", n)
	}
	memtest.MustAudit(t, s)
}

// Limits of policies that are gone make room for others, and for no more than a call needs.
func TestLimitsOfGonePoliciesMakeRoom(t *testing.T) {
	s := memory.New(memory.Options{Journal: true})
	use := func(name string) {
		t.Helper()
		if _, err := s.SetPolicy(name, []cell.Limit{memtest.MustParse(t, "5/1h")}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		p := s.PolicyNamed(name)
		memtest.MustTake(t, s, 1, t0, []store.Call{store.CallOf([]byte("k"), p.Limits[0])})
	}
	for i := range store.MaxLimits {
		use(fmt.Sprint("p", i))
	}
	full := s.Stats(t0).Bytes
	for _, name := range []string{"p0", "p1"} {
		s.DeletePolicy(name)
	}
	for left := 2; left > 0; left-- {
		use(fmt.Sprint("new", left))
		if n := count(s, "k", t0); n != store.MaxLimits-left+1 {
			t.Errorf("%d limits, and room for %d more", n, left-1)
		}
	}
	if got := s.Stats(t0).Bytes; got != full {
		t.Errorf("%d bytes, want %d", got, full)
	}
	if _, err := s.Take(memtest.Calls(t, "k", "1/1h"), store.TakeOptions{Cost: 1}, memtest.At(t0)); err != store.ErrTooManyLimits {
		t.Errorf("%v", err)
	}
	memtest.MustAudit(t, s)
}

// Many keys in one Take have nothing to do with how many limits each of them may hold.
func TestManyKeysInOneTake(t *testing.T) {
	s := memory.New(memory.Options{Shards: 8})
	var list []store.Call
	for i := range store.MaxLimits {
		list = append(list, memtest.Call(t, fmt.Sprint(i%100), fmt.Sprintf("5/%dm", 1+i/100)))
	}
	for range 5 {
		if got := memtest.MustTake(t, s, 1, t0, list); got.Limited {
			t.Fatalf("%+v", got)
		}
	}
	if got := memtest.MustTake(t, s, 1, t0, list); !got.Limited {
		t.Fatalf("%+v", got)
	}
	memtest.MustAudit(t, s)
}

// More new keys than there may be are refused, and fewer find room however full it is.
func TestTakeOfMoreKeysThanThereMayBe(t *testing.T) {
	for _, noEviction := range []bool{false, true} {
		s := memory.New(memory.Options{MaxKeys: 3, Shards: 4, NoEviction: noEviction})
		list := memtest.Calls(t, "a", "5/1m", "b", "5/1m", "c", "5/1m", "d", "5/1m")
		if _, err := s.Take(list, store.TakeOptions{Cost: 1}, memtest.At(t0)); !errors.Is(err, store.ErrFull) || s.Len(t0) != 0 {
			t.Errorf("%v, %d keys", err, s.Len(t0))
		}
		memtest.MustTake(t, s, 1, t0, list[:2])
		switch _, err := s.Take(list[2:], store.TakeOptions{Cost: 1}, memtest.At(t0)); {
		case noEviction && !errors.Is(err, store.ErrFull), !noEviction && err != nil:
			t.Errorf("%v", err)
		}
		memtest.MustAudit(t, s)
	}
}

// What a limit would take more is refused before anything has changed, also where it is the ring of a log that grows.
func TestNoEvictionRefusesLimits(t *testing.T) {
	one := int64(table.OverheadBytes + table.LimitEntryBytes)
	ring := int64(table.RingBytes + 8*2*4) // of four calls
	for _, c := range []struct {
		maxBytes int64
		passes   int // calls of 100/1m,algo=log, each at another time
	}{{one - 1, 0}, {one, 0}, {one + ring, 4}, {one + ring + 8*2*4 - 1, 4}, {one + ring + 8*2*4, 8}} {
		s := memory.New(memory.Options{MaxBytes: c.maxBytes, NoEviction: true})
		list, passed := memtest.Calls(t, "k", "100/1m,algo=log"), 0
		for i := range int64(10) {
			switch _, err := s.Take(list, store.TakeOptions{Cost: 1}, memtest.At(t0+i)); {
			case err == nil:
				passed++
			case !errors.Is(err, store.ErrFull):
				t.Fatal(err)
			}
		}
		if got := memtest.MustTake(t, s, 0, t0+10, list); passed != c.passes || int(list[0].Decision.Remaining) != 100-c.passes {
			t.Errorf("%d bytes: %d passed, want %d; %+v", c.maxBytes, passed, c.passes, got)
		}
		if _, err := s.Take(memtest.Calls(t, "k", "100/1m,algo=log", "k", "1/1h"), store.TakeOptions{Cost: 1},
			memtest.At(t0+20)); !errors.Is(err, store.ErrFull) {
			t.Errorf("%d bytes: %v", c.maxBytes, err)
		}
		memtest.MustAudit(t, s)
	}
}

// Two of half of what int32 holds are more than all of it.
func TestSharedStateAddsUp(t *testing.T) {
	for _, text := range []string{"2147483647/1h", "2147483647/1h,algo=window", "2147483647/1h,algo=slide",
		"2147483647/1h,algo=slide,buckets=4", "2147483647/1h,algo=log"} {
		for _, key := range []string{"k", "new"} {
			s := memory.New(memory.Options{})
			if key == "k" {
				memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", text))
			}
			list := memtest.Calls(t, key, text, key, text)
			if got := memtest.MustTake(t, s, 1<<30+1, t0, list); !got.Limited || got.Granted != 0 || list[0].Decision.Limited ||
				got.RetryAfterNS != cell.Never {
				t.Errorf("%s: %+v, %+v", text, got, list[0].Decision)
			}
			if n := count(s, "new", t0); n != 0 {
				t.Errorf("%s: %d limits", text, n)
			}
		}
	}
}

// Two limits that differ in count or burst cannot share a state in one call.
func TestTwoLimits(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, other := range []string{"6/1m", "5/1m,burst=2"} {
		_, err := s.Take(memtest.Calls(t, "k", "5/1m", "k", other), store.TakeOptions{Cost: 1}, memtest.At(t0))
		if err != store.ErrTwoLimits {
			t.Errorf("%s: %v", other, err)
		}
	}
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "5/1m", "k", "5/1m,block=1s,shadow", "k", "5/1h"))
}

// A rule that denies is stronger than FORCE, and one of several keys that it denies holds up all.
func TestRulesOfTake(t *testing.T) {
	s := memory.New(memory.Options{})
	put := func(r policy.Rule) {
		if _, err := s.PutRule(r, t0); err != nil {
			t.Fatal(err)
		}
	}
	put(policy.Rule{Deny: true, Pattern: "bad", UntilNS: t0 + 3*second})
	put(policy.Rule{Pattern: "good"})
	for _, mode := range []cell.Mode{cell.Take, cell.Force} {
		list := memtest.Calls(t, "k", "5/1m,block=1s", "bad", "5/1m", "good", "5/1m")
		got, err := s.Take(list, store.TakeOptions{Cost: 7, Mode: mode}, memtest.At(t0))
		if err != nil || !got.Limited || got.Granted != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if mode == cell.Force && count(s, "k", t0) != 0 {
			t.Error("what was denied by a rule was taken by force")
		}
		s.Delete([]byte("k"), t0)
	}
	got := memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "bad", "5/1m"))
	if !got.Limited || got.RetryAfterNS != 3*uint64(second) {
		t.Errorf("%+v", got)
	}
	if got := memtest.MustTake(t, s, 1<<30, t0, memtest.Calls(t, "good", "5/1m")); got.Limited || got.Granted != 1<<30 {
		t.Errorf("%+v", got)
	}
	if got := memtest.MustTake(t, s, 1, t0+3*second, memtest.Calls(t, "bad", "5/1m", "good", "1/1h")); got.Limited {
		t.Errorf("%+v", got)
	}
	memtest.ExpectKeys(t, s, t0+3*second, "bad")
}

// Callers take from keys that overlap, in all orders, while keys are renamed, copied, flushed, put, exported and drained and policies
// and rules change. Nothing hangs, and the account is right.
func TestTakesAtOnce(t *testing.T) {
	for _, o := range []memory.Options{
		{Shards: 1, Journal: true}, {Shards: 8, Journal: true}, {Shards: 8, MaxKeys: 3, Journal: true}, {Shards: 8, MaxKeys: 3},
		{Shards: 4, MaxKeys: 6, MaxBytes: 1500, NoEviction: true, Journal: true}, {Shards: 4, MaxBytes: 700},
	} {
		s := memory.New(o)
		texts := []string{"3/1s", "5/1m,block=2s", "9/1s,algo=log", "4/1s,algo=slide,buckets=3", "3/1s,algo=window", "2/1s,shadow"}
		var clock atomic.Int64
		clock.Store(t0)
		key := func() string { return fmt.Sprint("key ", rand.IntN(6)) }
		name := func() string { return fmt.Sprint("p", rand.IntN(2)) }
		take := func(int) {
			list := make([]store.Call, 1+rand.IntN(4))
			for i := range list {
				list[i] = memtest.Call(t, key(), texts[rand.IntN(len(texts))])
				if p := s.PolicyNamed(name()); p != nil && rand.IntN(3) == 0 {
					list[i].Limit, list[i].Policy = &p.Limits[0].Limit, p.Limits[0]
				}
			}
			modes := []cell.Mode{cell.Take, cell.Take, cell.Peek, cell.Force}
			_, err := s.Take(list, store.TakeOptions{Cost: rand.Int64N(4), Mode: modes[rand.IntN(4)], UpTo: rand.IntN(3) == 0},
				memtest.At(clock.Add(second/100)))
			if err != nil && !errors.Is(err, store.ErrFull) && err != store.ErrWrongType && err != store.ErrTwoLimits {
				t.Error(err)
			}
		}
		throttle := memtest.MustLimit(t, 3, 1, 1)
		methods := []func(i int){
			take, take, take, take,
			func(int) {
				_, _ = s.Give([]byte(key()), memtest.Call(t, "", texts[rand.IntN(6)]).Limit, nil, 2, memtest.At(clock.Load()))
			},
			func(int) { _, _ = s.Throttle([]byte(key()), throttle, 1, memtest.At(clock.Load())) },
			func(int) {
				s.Rename([]byte(key()), []byte(key()), memtest.At(clock.Load()))
				s.Delete([]byte(key()), clock.Load())
			},
			func(i int) {
				s.RenameNew([]byte(key()), []byte(key()), memtest.At(clock.Load()))
				if from, to := key(), key(); from != to {
					_, _ = s.Copy([]byte(from), []byte(to), i%2 == 0, memtest.At(clock.Load()))
				}
			},
			func(i int) {
				limits := []cell.Limit{memtest.MustParse(t, texts[rand.IntN(len(texts))])}
				_, _ = s.SetPolicy(name(), limits, policy.Options{Reset: i%7 == 0})
				if i%5 == 0 {
					s.DeletePolicy(name())
				}
				s.Policies()
				s.Settings(policy.PolicySetting)
			},
			func(i int) {
				rule := policy.Rule{Deny: i%2 == 0, Pattern: key() + "*", UntilNS: clock.Load() + rand.Int64N(second)}
				_, _ = s.PutRule(rule, clock.Load())
				s.DeleteRule(policy.Rule{Pattern: key() + "*"}, clock.Load())
				s.Rules(clock.Load())
			},
			func(i int) {
				s.Sweep(clock.Load())
				s.Stats(clock.Load())
				if o.MaxKeys == 3 || i%20 == 0 { // while others have paid for room
					s.Flush()
				}
			},
			func(int) {
				p, more := s.StartExport(), true
				for more {
					p, more = s.Export(p, clock.Load(), func(_ []byte, st store.Value) { readLimits(st) })
				}
				s.EndExport(p)
				_, _ = s.Limits([]byte(key()), memtest.At(clock.Load()), func(l *store.LimitState) { memtest.LimitText(l) })
			},
			func(int) {
				s.DrainSettings(func(c policy.Change) { s.SettingText(c.Setting) })
				memtest.Drain(s, func(c memory.Change) {
					if c.Key != nil && !c.Deleted {
						readLimits(c.State)
					}
				})
			},
		}
		parallel(len(methods), func(i int) {
			for turn := range 300 {
				methods[i](turn)
			}
		})
		memtest.MustAudit(t, s)
		s.Flush()
		memtest.MustAudit(t, s)
		if st := s.Stats(clock.Load()); st.Bytes != 0 {
			t.Errorf("%+v: %+v", o, st)
		}
	}
}

// A hash of redis-server has the parts of a log in any order, and before the limit whose calls they follow.
func TestPutFieldsInAnyOrder(t *testing.T) {
	s := memory.New(memory.Options{})
	const name, want = "log/1h", "limit=500/1h,algo=log calls=1800000000000000001:1,+1:2,+2:1,+3:1 blocked=1800000009000000000"
	fields := [][2]string{
		{name, "limit=500/1h,algo=log calls=1800000000000000001:1,+1:7,+9:9"},
		{name + " 7", "limit=500/1h,algo=log after=1800000000000000001 calls=1800000000000000002:2,+2:5 blocked=1800000008000000000"},
		{name + " 0", "limit=500/1h,algo=log after=1800000000000000003 calls=1800000000000000004:1,+3:1 blocked=1800000009000000000"},
		{"gcra/1m", "limit=5/1m tat=1800000009000000000"},
		{"gcra/1h", "limit=5/1h tat=1800000009000000000"},
	}
	now := store.Access{NowNS: 1_800_000_000_000_000_009}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, apart := range []bool{false, true} {
			var parsed []store.Field
			for _, i := range append([]int{3}, append(order, 4)...) {
				f, err := s.ParseField(fields[i][0], fields[i][1])
				if err != nil {
					t.Fatal(err)
				}
				parsed = append(parsed, f)
			}
			wantAdded := 0 // to what is there
			if !apart {
				s.Flush()
				wantAdded = 3
			}
			if added, err := s.PutFields([]byte("k"), parsed, apart, now); err != nil || added != wantAdded {
				t.Fatal(added, err)
			}
			names := ""
			_, err := s.Limits([]byte("k"), now, func(l *store.LimitState) {
				if names += string(l.AppendName(nil)) + " "; l.Limit.Algo != cell.Log {
					return
				}
				if got := string(l.Limit.AppendState(nil, &l.State)); got != want {
					t.Errorf("%v, apart %v: %s\nwant %s", order, apart, got, want)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if names != "gcra/1m log/1h gcra/1h " {
				t.Errorf("%v, apart %v: the limits are %s", order, apart, names)
			}
			memtest.MustAudit(t, s)
		}
	}
	for name, text := range map[string]string{"log/1h": fields[1][1], "log/1h 1": fields[0][1], "log/2h 1": fields[1][1],
		"log/1h x": fields[1][1], "log/1h ": fields[1][1], "gcra/1h 1": "limit=5/1h tat=1"} {
		if f, err := s.ParseField(name, text); err == nil {
			t.Errorf("%s: %s is read as %+v", name, text, f)
		}
	}
}

// What is put apart from what a key holds leaves a key as it was where it is refused: a log too.
func TestPutFieldsThatAreRefused(t *testing.T) {
	s := memory.New(memory.Options{})
	memtest.MustTake(t, s, 3, t0, memtest.Calls(t, "k", "5/1h,algo=log"))
	text := func() (text string) {
		_, _ = s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) { text = memtest.LimitText(l) })
		return text
	}
	want := text()
	var fields []store.Field
	for _, part := range []string{fmt.Sprintf("after=0 calls=%d:2", t0+1), fmt.Sprintf("after=%d calls=%d:9007199254740992", t0+2, t0+3)} {
		f, err := s.ParseField("log/1h 1", "limit=5/1h,algo=log "+part)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	if _, err := s.PutFields([]byte("k"), fields, true, memtest.At(t0)); err == nil {
		t.Error("calls that cannot be counted are taken")
	}
	if got := text(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
