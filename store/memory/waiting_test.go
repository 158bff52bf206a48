package memory_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// waiter is a caller that may wait.
type waiter struct {
	s      *memory.Store
	reqs   [1]store.TakeRequest
	doneNS atomic.Int64 // when it was answered; 0: not yet
	woken  atomic.Int64
}

func (w *waiter) Wake() { w.woken.Add(1); w.doneNS.Store(clock()) }

func (w *waiter) taken() store.Taken { return w.reqs[0].Taken }

func (w *waiter) err() error { return w.reqs[0].Err }

// errUnblocked is a reason to leave that becomes the call's error.
var errUnblocked = errors.New("unblocked")

func (w *waiter) leave(why error) bool { return w.s.Leave(&w.reqs[0], why) }

func (w *waiter) granted() bool { return w.doneNS.Load() != 0 && !w.taken().Limited && w.err() == nil }

func (w *waiter) denied() bool { return w.doneNS.Load() != 0 && w.taken().Limited && w.err() == nil }

func (w *waiter) waits() bool { return w.doneNS.Load() == 0 }

func (w *waiter) at(start int64) time.Duration { return time.Duration(w.doneNS.Load() - start) }

// clock is the time of synctest.
func clock() int64 { return time.Now().UnixNano() }

// ask asks for a cost on terms.
func ask(s *memory.Store, mode store.WaitMode, most time.Duration, cost int64, calls ...store.Call) *waiter {
	w := &waiter{s: s}
	w.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost,
		Terms: &store.Terms{Mode: mode, MaxNS: int64(most)}}}
	if s.TakeBatch(w.reqs[:], memtest.At(clock()), w) {
		w.doneNS.Store(clock())
	}
	return w
}

func await(s *memory.Store, most time.Duration, cost int64, calls ...store.Call) *waiter {
	return ask(s, store.Wait, most, cost, calls...)
}

// plainly takes without waiting.
func plainly(s *memory.Store, cost int64, calls ...store.Call) *waiter {
	return ask(s, store.DontWait, 0, cost, calls...)
}

// waitingStore is a store in the time of synctest.
func waitingStore() *memory.Store {
	return memory.New(memory.Options{Now: clock, Shards: 4, Journal: true})
}

// inBubble runs a test in fake time, and checks that nobody waits at its end.
func inBubble(t *testing.T, test func(t *testing.T, s *memory.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := waitingStore()
		test(t, s)
		synctest.Wait()
		if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d callers wait for %d keys", callers, keys)
		}
	})
}

// While somebody waits a plain call is denied, also when it would pass by itself, and is told when it passes behind all others.
func TestAPlainCallStandsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		c := func() store.Call { return memtest.Call(t, "k", "10/1s") }
		plainly(s, 9, c())
		w := await(s, time.Second, 10, c()) // in 900 ms
		if !w.waits() {
			t.Fatal("it does not wait")
		}
		for _, mode := range []cell.Mode{cell.Take, cell.Peek} {
			taken, err := s.Take([]store.Call{c()}, store.TakeOptions{Cost: 1, Mode: mode}, memtest.At(clock()))
			if err != nil || !taken.Limited || taken.RetryAfterNS != 1e9 {
				t.Fatalf("%+v, %v", taken, err)
			}
		}
		if !await(s, 999*time.Millisecond, 1, c()).denied() {
			t.Fatal("one that would wait for too long waits")
		}
		last := await(s, time.Second, 1, c())
		if !w.leave(nil) || w.leave(nil) {
			t.Fatal("it does not leave once")
		}
		synctest.Wait()
		if !last.granted() || last.doneNS.Load() != clock() || w.woken.Load() != 0 {
			t.Fatal("the next does not pass when the one before it has left")
		}
	})
}

// After a change of a key or a limit, those who wait for it are looked at again at once.
func TestWhatLetsWaitersGo(t *testing.T) {
	const literal = "1/1h"
	granted, denied := (*waiter).granted, (*waiter).denied
	within := func(want func(*waiter) bool, most time.Duration) func(*waiter) bool { // it is told a wait of that, as of now
		return func(w *waiter) bool {
			retry := w.reqs[0].Calls[0].Decision.RetryAfterNS
			return want(w) && 0 < retry && retry <= uint64(most)
		}
	}
	failed := func(err error) func(*waiter) bool {
		return func(w *waiter) bool { return !w.waits() && w.err() == err }
	}
	set := func(tb testing.TB, s *memory.Store, text string, o policy.Options) {
		if ok, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(tb, text)}, o); !ok || err != nil {
			tb.Fatal(ok, err)
		}
	}
	put := func(st store.Value) func(testing.TB, *memory.Store) {
		return func(tb testing.TB, s *memory.Store) {
			if err := s.Update([]byte("k"), memtest.At(clock()), func(store.Value, bool) (store.Value, bool) {
				return st, true
			}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	var id int64 // of the lease that the first has, where that is conc's
	ends := func(end func(s *memory.Store) bool) func(testing.TB, *memory.Store) {
		return func(tb testing.TB, s *memory.Store) {
			if !end(s) {
				tb.Fatal("there is no such lease")
			}
		}
	}
	for _, c := range []struct {
		name   string
		limit  string
		change func(testing.TB, *memory.Store)
		want   func(*waiter) bool
	}{
		{"release", "1/3h,algo=conc", ends(func(s *memory.Store) bool { return memtest.Did(s.Release([]byte("k"), id, memtest.At(clock()))) }), granted},
		{"settle", "1/3h,algo=conc", ends(func(s *memory.Store) bool { return memtest.Did(s.Settle([]byte("k"), id, 1, memtest.At(clock()))) }), granted},
		{"renew for less", "1/3h,algo=conc", ends(func(s *memory.Store) bool {
			ok := memtest.Did(s.Renew([]byte("k"), id, int64(time.Second), memtest.At(clock())))
			celldtest.Pass(time.Second)
			return ok
		}), granted},
		{"renew for more", "1/90m,algo=conc", ends(func(s *memory.Store) bool {
			ok := memtest.Did(s.Renew([]byte("k"), id, int64(3*time.Hour), memtest.At(clock())))
			celldtest.Pass(100 * time.Minute)
			return ok
		}), (*waiter).waits},
		{"give", literal, func(tb testing.TB, s *memory.Store) {
			l := memtest.MustParse(tb, literal)
			if n, err := s.Give([]byte("k"), &l, nil, 1, memtest.At(clock())); n != 1 || err != nil {
				tb.Fatal(n, err)
			}
		}, granted},
		{"del", literal, func(_ testing.TB, s *memory.Store) { s.Delete([]byte("k"), clock()) }, granted},
		{"update deletes", literal, put(store.Value{}), granted},
		{"flush", literal, func(_ testing.TB, s *memory.Store) { s.Flush() }, granted},
		{"rename away", literal, func(_ testing.TB, s *memory.Store) {
			s.Rename([]byte("k"), []byte("other"), memtest.At(clock()))
		}, granted},
		{"rename onto", literal, func(tb testing.TB, s *memory.Store) {
			plainly(s, 1, memtest.Call(tb, "other", "1/1m"))
			s.Rename([]byte("other"), []byte("k"), memtest.At(clock()))
		}, granted},
		{"copy onto", literal, func(tb testing.TB, s *memory.Store) {
			plainly(s, 1, memtest.Call(tb, "other", "1/1m"))
			if ok, err := s.Copy([]byte("other"), []byte("k"), true, memtest.At(clock())); !ok || err != nil {
				tb.Fatal(ok, err)
			}
		}, granted},
		{"expiry", literal, func(_ testing.TB, s *memory.Store) {
			_ = s.Update([]byte("k"), memtest.At(clock()), func(st store.Value, _ bool) (store.Value, bool) {
				st.ExpiryNS = clock() + int64(time.Second)
				return st, true
			})
			celldtest.Pass(time.Second)
			for s.Sweep(clock()) {
			}
		}, granted},
		{"a TAT is put", literal, put(store.Value{TAT: 1 << 62}), func(w *waiter) bool {
			idle, there := w.s.IdleNS([]byte("k"), clock())
			return failed(store.ErrWrongType)(w) && there && idle == 0
		}},
		{"deny", literal, func(_ testing.TB, s *memory.Store) { _, _ = s.PutRule(policy.Rule{Deny: true, Pattern: "k"}, clock()) }, denied},
		{"deny for a while", literal, func(_ testing.TB, s *memory.Store) {
			_, _ = s.PutRule(policy.Rule{Deny: true, Pattern: "k", UntilNS: clock() + int64(time.Minute)}, clock())
		}, within(denied, time.Minute)},
		{"allow", literal, func(_ testing.TB, s *memory.Store) { _, _ = s.PutRule(policy.Rule{Pattern: "k"}, clock()) }, granted},
		{"policy is set", "@p", func(tb testing.TB, s *memory.Store) {
			set(tb, s, "2/1s", policy.Options{})
			celldtest.Pass(time.Second / 2)
		}, granted},
		{"policy is shadow", "@p", func(tb testing.TB, s *memory.Store) {
			set(tb, s, "1/1h,shadow", policy.Options{})
		}, within(granted, time.Hour)},
		{"policy is too small", "@p", func(tb testing.TB, s *memory.Store) { set(tb, s, "2/1h,burst=1", policy.Options{}) }, (*waiter).waits},
		{"policy is a window", "@p", func(tb testing.TB, s *memory.Store) { set(tb, s, "1/1h,algo=window", policy.Options{}) }, granted},
		{"policy is reset", "@p", func(tb testing.TB, s *memory.Store) { set(tb, s, "1/1h", policy.Options{Reset: true}) }, granted},
		{"policy is deleted", "@p", func(_ testing.TB, s *memory.Store) { s.DeletePolicy("p") }, failed(policy.ErrNoPolicy)},
		{"another policy", "@p", func(tb testing.TB, s *memory.Store) {
			_, _ = s.SetPolicy("q", []cell.Limit{memtest.MustParse(tb, "1/1s")}, policy.Options{})
		}, (*waiter).waits},
		{"the wall clock", "1/hour", func(_ testing.TB, s *memory.Store) { s.SetWall(clock()+int64(time.Hour), clock()) }, granted},
		{"take by force", literal, func(tb testing.TB, s *memory.Store) {
			_, _ = s.Take([]store.Call{memtest.Call(tb, "k", literal)}, store.TakeOptions{Cost: 1, Mode: cell.Force}, memtest.At(clock()))
		}, (*waiter).waits},
		{"unblocked", literal, nil, failed(errUnblocked)},
		{"refused", literal, nil, denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *memory.Store) {
				of := func() store.Call {
					if c.limit != "@p" {
						return memtest.Call(t, "k", c.limit)
					}
					p := s.Policy([]byte("p"))
					return store.CallOf([]byte("k"), p.Limits[0])
				}
				if c.limit == "@p" {
					set(t, s, "1/1h", policy.Options{})
				}
				first := plainly(s, 1, of())
				if !first.granted() {
					t.Fatal("the first is denied")
				}
				if id = first.reqs[0].Terms.Lease; id != 0 {
					plainly(s, 1, memtest.Call(t, "k", "9/9h")) // so that the key outlives the lease
				}
				w := await(s, 2*time.Hour, 1, of())
				synctest.Wait()
				if !w.waits() {
					t.Fatal("it does not wait")
				}
				switch c.name {
				case "unblocked":
					w.leave(errUnblocked)
				case "refused":
					w.leave(store.ErrRefused)
				default:
					c.change(t, s)
				}
				synctest.Wait()
				if !c.want(w) || w.woken.Load() > 1 {
					t.Errorf("waits %v, woken %d, %+v, %v", w.waits(), w.woken.Load(), w.taken(), w.err())
				}
				w.leave(nil)
			})
		})
	}
}

// A line outlives its key: who comes after a Flush still stands behind those who wait.
func TestALineOutlivesItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		c := func() store.Call { return memtest.Call(t, "k", "2/1s,burst=1") }
		start := clock()
		var all []*waiter
		for range 6 {
			all = append(all, await(s, time.Minute, 1, c()))
		}
		s.Flush()
		synctest.Wait()
		for i, w := range all {
			if w.waits() != (i > 1) {
				t.Fatalf("%d waits: %v", i, w.waits())
			}
		}
		celldtest.Pass(600 * time.Millisecond)
		if plainly(s, 1, c()).granted() || s.Delete([]byte("k"), clock()) && plainly(s, 1, c()).granted() {
			t.Fatal("a plain call overtakes")
		}
		celldtest.Pass(10 * time.Second)
		for i, want := range []time.Duration{0, 0, 500, 600, 1100, 1600} {
			if got := all[i].at(start); got != want*time.Millisecond {
				t.Errorf("%d passes after %v", i, got)
			}
		}
	})
}

// A call of several limits takes nothing before it takes all, and waits for one after the other.
func TestSeveralLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const slow, fast = "1/1s,burst=1", "10/1s,burst=1"
		start := clock()
		plainly(s, 1, memtest.Call(t, "a", slow))
		both := await(s, time.Minute, 1, memtest.Call(t, "a", slow), memtest.Call(t, "b", fast)) // waits for a
		if !plainly(s, 1, memtest.Call(t, "b", fast)).granted() {
			t.Error("it holds what it does not have yet")
		}
		celldtest.Pass(950 * time.Millisecond)
		var fasts []*waiter
		for range 3 {
			fasts = append(fasts, await(s, time.Minute, 1, memtest.Call(t, "b", fast)))
		}
		celldtest.Pass(10 * time.Second)
		// At 1000 a passes, and b does not. There it is before those who came later.
		if both.at(start) != 1050*time.Millisecond || !both.granted() {
			t.Errorf("both pass after %v", both.at(start))
		}
		for i, want := range []time.Duration{950, 1150, 1250} {
			if got := fasts[i].at(start); got != want*time.Millisecond {
				t.Errorf("%d of those for b passes after %v", i, got)
			}
		}
	})
}

// Calls for the same keys in any order of them all pass: nobody holds one and waits for another.
func TestNoDeadlock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const l = "10/1s,burst=1"
		var all []*waiter
		for i := range 300 {
			keys := []string{"a", "b", "c"}
			calls := []store.Call{memtest.Call(t, keys[i%3], l), memtest.Call(t, keys[(i+1+i/3%2)%3], l)}
			all = append(all, await(s, time.Hour, 1, calls...))
		}
		celldtest.Pass(time.Minute)
		for i, w := range all {
			if !w.granted() {
				t.Errorf("%d: waits %v: %+v", i, w.waits(), w.taken())
			}
		}
	})
}

// A key for which somebody waits is not evicted.
func TestWaitedKeysAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{Now: clock, MaxKeys: 4, Shards: 1})
		const l = "1/1h"
		plainly(s, 1, memtest.Call(t, "waited", l))
		w := await(s, 2*time.Hour, 1, memtest.Call(t, "waited", l))
		for i := range 100 {
			if got := plainly(s, 1, memtest.Call(t, string(rune('a'+i)), l)); !got.granted() {
				t.Fatal(got.err())
			}
		}
		if !w.waits() {
			t.Fatal("it passes")
		}
		memtest.SetCapacityNow(&s.Capacity, 1, 0, false)
		if n := s.Len(clock()); n != 1 || !w.waits() {
			t.Errorf("%d keys, waits %v", n, w.waits())
		}
		if got := plainly(s, 1, memtest.Call(t, "x", l)); !errors.Is(got.err(), store.ErrFull) {
			t.Errorf("where all keys are waited for: %+v, %v", got.taken(), got.err())
		}
		w.leave(nil)
		if got := plainly(s, 1, memtest.Call(t, "x", l)); !got.granted() {
			t.Error(got.err())
		}
	})
}

// If there is no room at the moment of a call, its caller is told so, and a reservation is dropped.
func TestNoRoomAtTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{Now: clock, MaxKeys: 1, NoEviction: true, Shards: 1})
		const l = "1/1s,burst=1"
		plainly(s, 1, memtest.Call(t, "k", l))
		first := await(s, time.Minute, 1, memtest.Call(t, "k", l))
		ask(s, store.Reserve, time.Minute, 1, memtest.Call(t, "k", l))
		second := await(s, time.Minute, 1, memtest.Call(t, "k", l))
		s.Rename([]byte("k"), []byte("other"), memtest.At(clock()))
		plainly(s, 1, memtest.Call(t, "other", "1/1h"))
		start := clock()
		celldtest.Pass(time.Minute)
		if !errors.Is(first.err(), store.ErrFull) || !errors.Is(second.err(), store.ErrFull) || first.at(start) != 0 ||
			second.at(start) != 0 {
			t.Errorf("%v after %v, %v after %v", first.err(), first.at(start), second.err(), second.at(start))
		}
		if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d callers, %d keys", callers, keys)
		}
	})
}

// No file names a waiter: a copy has what was taken.
func TestWaitersAreNotExported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		plainly(s, 1, memtest.Call(t, "k", "1/1s"))
		memtest.Drain(s, func(memory.Change) {})
		before, _ := s.Get([]byte("k"), memtest.At(clock()))
		changes := s.Stats(clock()).Changes
		w := await(s, time.Minute, 1, memtest.Call(t, "k", "1/1s"))
		after, _ := s.Get([]byte("k"), memtest.At(clock()))
		memtest.Drain(s, func(c memory.Change) { t.Errorf("%+v is told", c) })
		if before != after || s.Stats(clock()).Changes != changes {
			t.Errorf("%+v before, %+v after", before, after)
		}
		w.leave(nil)
	})
}

type wakerFunc func()

func (f wakerFunc) Wake() { f() }

// A policy whose limit becomes a window has plain calls told their wait behind all who wait already.
func TestWaitersOfAPolicyThatBecomesAWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		var all []*waiter
		set := func(limit string) {
			if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, limit)}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		c := func() store.Call {
			p := s.PolicyNamed("p")
			return store.CallOf([]byte("k"), p.Limits[0])
		}
		set("1/1h")
		for range 60 {
			all = append(all, await(s, 100*time.Hour, 1, c()))
		}
		set("1/1h,algo=window")
		celldtest.Pass(time.Millisecond)
		if w := plainly(s, 1, c()); !w.denied() {
			t.Errorf("%+v, %v", w.taken(), w.err())
		}
		for _, w := range all {
			w.leave(nil)
		}
	})
}
