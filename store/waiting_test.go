package store_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// waiter is a caller that may wait.
type waiter struct {
	s      *store.Store
	reqs   [1]store.TakeRequest
	doneNS atomic.Int64 // when it was answered; 0: not yet
	woken  atomic.Int64
}

func (w *waiter) Wake() { w.woken.Add(1); w.doneNS.Store(clock()) }

func (w *waiter) taken() store.Taken           { return w.reqs[0].Taken }
func (w *waiter) err() error                   { return w.reqs[0].Err }
func (w *waiter) leave(why error) bool         { return w.s.Leave(&w.reqs[0], why) }
func (w *waiter) granted() bool                { return w.doneNS.Load() != 0 && !w.taken().Limited && w.err() == nil }
func (w *waiter) denied() bool                 { return w.doneNS.Load() != 0 && w.taken().Limited && w.err() == nil }
func (w *waiter) waits() bool                  { return w.doneNS.Load() == 0 }
func (w *waiter) at(start int64) time.Duration { return time.Duration(w.doneNS.Load() - start) }

// clock is the time of synctest.
func clock() int64 { return time.Now().UnixNano() }

// ask asks for a cost on terms.
func ask(s *store.Store, mode store.WaitMode, most time.Duration, cost int64, calls ...store.Call) *waiter {
	w := &waiter{s: s}
	w.reqs[0] = store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: cost, Terms: &store.Terms{Mode: mode, MaxNS: int64(most)}}}
	if s.TakeBatch(w.reqs[:], at(clock()), w) {
		w.doneNS.Store(clock())
	}
	return w
}

func await(s *store.Store, most time.Duration, cost int64, calls ...store.Call) *waiter {
	return ask(s, store.Wait, most, cost, calls...)
}

// plainly takes without waiting.
func plainly(s *store.Store, cost int64, calls ...store.Call) *waiter {
	return ask(s, store.DontWait, 0, cost, calls...)
}

// waitingStore is a store in the time of synctest.
func waitingStore() *store.Store {
	return store.New(store.Options{Now: clock, Shards: 4, Journal: true})
}

// inBubble runs a test in fake time, and checks that nobody waits at its end.
func inBubble(t *testing.T, test func(t *testing.T, s *store.Store)) {
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

// pass lets time pass, and all that is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Each of those who wait takes at its own moment, in the order in which they came.
func TestWaitersAreServedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		const n = 10_000
		start := clock()
		var all []*waiter
		for range n {
			all = append(all, await(s, time.Hour, 1, call(t, "k", "1000/1s,burst=1")))
		}
		if callers, keys := s.Waiting(); callers != n-1 || keys != 1 {
			t.Fatalf("%d callers wait for %d keys", callers, keys)
		}
		pass(n * time.Millisecond)
		for i, w := range all {
			if got := w.at(start); got != time.Duration(i)*time.Millisecond || !w.granted() || w.taken().Granted != 1 {
				t.Fatalf("%d: after %v: %+v, %v", i, got, w.taken(), w.err())
			}
			if w.woken.Load() != int64(min(i, 1)) {
				t.Fatalf("%d was woken %d times", i, w.woken.Load())
			}
		}
	})
}

// While somebody waits a plain call is denied, also when it would pass by itself, and is told when it passes behind all others.
func TestAPlainCallStandsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		c := func() store.Call { return call(t, "k", "10/1s") }
		plainly(s, 9, c())
		w := await(s, time.Second, 10, c()) // in 900 ms
		if !w.waits() {
			t.Fatal("it does not wait")
		}
		for _, mode := range []cell.Mode{cell.Take, cell.Peek} {
			taken, err := s.Take([]store.Call{c()}, store.TakeOptions{Cost: 1, Mode: mode}, at(clock()))
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

// What changes a key or a limit has those who wait for it looked at again at once.
func TestWhatLetsWaitersGo(t *testing.T) {
	const literal = "1/1h"
	granted, denied := (*waiter).granted, (*waiter).denied
	failed := func(err error) func(*waiter) bool {
		return func(w *waiter) bool { return !w.waits() && w.err() == err }
	}
	set := func(tb testing.TB, s *store.Store, text string, o policy.Options) {
		if ok, err := s.SetPolicy("p", mustParse(tb, text), o); !ok || err != nil {
			tb.Fatal(ok, err)
		}
	}
	put := func(st store.Value, action store.Action) func(testing.TB, *store.Store) {
		return func(tb testing.TB, s *store.Store) {
			if err := s.Update([]byte("k"), at(clock()), func(store.Value, bool) (store.Value, store.Action) { return st, action }); err != nil {
				tb.Fatal(err)
			}
		}
	}
	var id int64 // of the lease that the first has, where that is conc's
	ends := func(end func(s *store.Store) bool) func(testing.TB, *store.Store) {
		return func(tb testing.TB, s *store.Store) {
			if !end(s) {
				tb.Fatal("there is no such lease")
			}
		}
	}
	for _, c := range []struct {
		name   string
		limit  string
		change func(testing.TB, *store.Store)
		want   func(*waiter) bool
	}{
		{"release", "1/3h,algo=conc", ends(func(s *store.Store) bool { return s.Release([]byte("k"), id, at(clock())) }), granted},
		{"settle", "1/3h,algo=conc", ends(func(s *store.Store) bool { return s.Settle([]byte("k"), id, 1, at(clock())) }), granted},
		{"renew for less", "1/3h,algo=conc", ends(func(s *store.Store) bool {
			ok := s.Renew([]byte("k"), id, int64(time.Second), at(clock()))
			time.Sleep(time.Second)
			return ok
		}), granted},
		{"renew for more", "1/90m,algo=conc", ends(func(s *store.Store) bool {
			ok := s.Renew([]byte("k"), id, int64(3*time.Hour), at(clock()))
			time.Sleep(100 * time.Minute)
			return ok
		}), (*waiter).waits},
		{"give", literal, func(tb testing.TB, s *store.Store) {
			l := mustParse(tb, literal)
			if n, err := s.Give([]byte("k"), &l, 0, 1, at(clock())); n != 1 || err != nil {
				tb.Fatal(n, err)
			}
		}, granted},
		{"del", literal, func(_ testing.TB, s *store.Store) { s.Delete([]byte("k"), clock()) }, granted},
		{"update deletes", literal, put(store.Value{}, store.Delete), granted},
		{"flush", literal, func(_ testing.TB, s *store.Store) { s.Flush() }, granted},
		{"rename away", literal, func(_ testing.TB, s *store.Store) { s.Rename([]byte("k"), []byte("other"), clock()) }, granted},
		{"rename onto", literal, func(tb testing.TB, s *store.Store) {
			plainly(s, 1, call(tb, "other", "1/1m"))
			s.Rename([]byte("other"), []byte("k"), clock())
		}, granted},
		{"copy onto", literal, func(tb testing.TB, s *store.Store) {
			plainly(s, 1, call(tb, "other", "1/1m"))
			if ok, err := s.Copy([]byte("other"), []byte("k"), true, at(clock())); !ok || err != nil {
				tb.Fatal(ok, err)
			}
		}, granted},
		{"expiry", literal, func(_ testing.TB, s *store.Store) {
			_ = s.Update([]byte("k"), at(clock()), func(st store.Value, _ bool) (store.Value, store.Action) {
				st.ExpiryNS = clock() + int64(time.Second)
				return st, store.Put
			})
			time.Sleep(time.Second)
			for s.Sweep(clock()) {
			}
		}, granted},
		{"a TAT is put", literal, put(store.Value{TAT: 1 << 62}, store.Put), failed(store.ErrWrongType)},
		{"deny", literal, func(_ testing.TB, s *store.Store) { _, _ = s.PutRule(policy.Rule{Deny: true, Pattern: "k"}, clock()) }, denied},
		{"allow", literal, func(_ testing.TB, s *store.Store) { _, _ = s.PutRule(policy.Rule{Pattern: "k"}, clock()) }, granted},
		{"policy is set", "@p", func(tb testing.TB, s *store.Store) {
			set(tb, s, "2/1s", policy.Options{})
			time.Sleep(time.Second / 2)
		}, granted},
		{"policy is shadow", "@p", func(tb testing.TB, s *store.Store) { set(tb, s, "1/1h,shadow", policy.Options{}) }, granted},
		{"policy is too small", "@p", func(tb testing.TB, s *store.Store) { set(tb, s, "2/1h,burst=1", policy.Options{}) }, (*waiter).waits},
		{"policy is a window", "@p", func(tb testing.TB, s *store.Store) { set(tb, s, "1/1h,algo=window", policy.Options{}) }, (*waiter).waits},
		{"policy is reset", "@p", func(tb testing.TB, s *store.Store) { set(tb, s, "1/1h", policy.Options{Reset: true}) }, granted},
		{"policy is deleted", "@p", func(_ testing.TB, s *store.Store) { s.DeletePolicy("p") }, failed(store.ErrNoPolicy)},
		{"another policy", "@p", func(tb testing.TB, s *store.Store) { _, _ = s.SetPolicy("q", mustParse(tb, "1/1s"), policy.Options{}) }, (*waiter).waits},
		{"the wall clock", "1/hour", func(_ testing.TB, s *store.Store) { s.SetWall(clock()+int64(time.Hour), clock()) }, granted},
		{"take by force", literal, func(tb testing.TB, s *store.Store) {
			_, _ = s.Take([]store.Call{call(tb, "k", literal)}, store.TakeOptions{Cost: 1, Mode: cell.Force}, at(clock()))
		}, (*waiter).waits},
		{"unblocked", literal, nil, failed(store.ErrUnblocked)},
		{"refused", literal, nil, denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *store.Store) {
				of := func() store.Call {
					if c.limit != "@p" {
						return call(t, "k", c.limit)
					}
					p := s.Policy([]byte("p"))
					return store.Call{Key: []byte("k"), Limit: &p.Limit, Policy: p.ID}
				}
				if c.limit == "@p" {
					set(t, s, "1/1h", policy.Options{})
				}
				first := plainly(s, 1, of())
				if !first.granted() {
					t.Fatal("the first is denied")
				}
				if id = first.reqs[0].Terms.Lease; id != 0 {
					plainly(s, 1, call(t, "k", "9/9h")) // so that the key outlives the lease
				}
				w := await(s, 2*time.Hour, 1, of())
				synctest.Wait()
				if !w.waits() {
					t.Fatal("it does not wait")
				}
				switch c.name {
				case "unblocked":
					w.leave(store.ErrUnblocked)
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

// A queue outlives its key: who comes after a Flush still stands behind those who wait.
func TestAQueueOutlivesItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		c := func() store.Call { return call(t, "k", "2/1s,burst=1") }
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
		pass(600 * time.Millisecond)
		if plainly(s, 1, c()).granted() || s.Delete([]byte("k"), clock()) && plainly(s, 1, c()).granted() {
			t.Fatal("a plain call overtakes")
		}
		pass(10 * time.Second)
		for i, want := range []time.Duration{0, 0, 500, 600, 1100, 1600} {
			if got := all[i].at(start); got != want*time.Millisecond {
				t.Errorf("%d passes after %v", i, got)
			}
		}
	})
}

// One that is still there at its deadline is answered as a plain call is, and blocked as one.
func TestDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		start := clock()
		c := func() store.Call { return call(t, "k", "1/1s,algo=log,block=5s") }
		plainly(s, 1, c())
		first, second := await(s, time.Second, 1, c()), await(s, 1500*time.Millisecond, 1, c())
		if !first.waits() || !second.waits() {
			t.Fatal("they do not wait")
		}
		pass(3 * time.Second)
		if !first.granted() || first.at(start) != time.Second {
			t.Errorf("the moment is the deadline: %+v", first.taken())
		}
		if !second.denied() || second.at(start) != 1500*time.Millisecond || second.taken().RetryAfterNS != 5e9 || second.woken.Load() != 1 {
			t.Errorf("%v: %+v", second.at(start), second.taken())
		}
		if w := await(s, 3*time.Second, 1, c()); !w.denied() || w.taken().RetryAfterNS != 35e8 {
			t.Errorf("blocked: %+v", w.taken())
		}
	})
}

// A refused wait is a denial: it blocks, also behind others.
func TestARefusedWaitBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		c := func() store.Call { return call(t, "k", "10/1s,block=5s") }
		plainly(s, 9, c())
		w := await(s, 10*time.Second, 5, c())
		if d := await(s, 0, 1, c()); !d.denied() || d.taken().RetryAfterNS != 5e9 || !w.waits() {
			t.Errorf("%+v", d.taken())
		}
		start := clock()
		pass(time.Minute)
		if w.at(start) != 5*time.Second || !w.granted() {
			t.Errorf("who waits passes after %v", w.at(start))
		}
	})
}

// A call that can never pass, or may not wait, is denied at once.
func TestWhoDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		c := func() store.Call { return call(t, "k", "1/1s") }
		plainly(s, 1, c())
		if w := await(s, time.Hour, 2, c()); !w.denied() || w.taken().RetryAfterNS != cell.Never {
			t.Errorf("above capacity: %+v", w.taken())
		}
		for _, most := range []time.Duration{-1, 0, time.Second - 1} {
			if w := await(s, most, 1, c()); !w.denied() || w.taken().RetryAfterNS != 1e9 {
				t.Errorf("WAIT %v: %+v", most, w.taken())
			}
		}
		reqs := []store.TakeRequest{{Calls: []store.Call{c()}, TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e10}}}}
		if !s.TakeBatch(reqs, at(clock()), nil) || !reqs[0].Taken.Limited {
			t.Error("it waits without a Waker")
		}
		if _, err := s.PutRule(policy.Rule{Deny: true, Pattern: "k"}, clock()); err != nil || !await(s, time.Hour, 1, c()).denied() {
			t.Error("it waits for a rule")
		}
		if s.Leave(&reqs[0], nil) || s.Leave(&store.TakeRequest{}, nil) {
			t.Error("one leaves that did not wait")
		}
	})
}

func TestTooManyWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		s.SetMaxWaiters(2)
		c := func() store.Call { return call(t, "k", "1/1s,burst=1") }
		plainly(s, 1, c())
		for i := range 4 {
			if w := await(s, time.Minute, 1, c()); w.waits() != (i < 2) || (w.err() == store.ErrTooManyWaiters) != (i >= 2) {
				t.Errorf("%d: waits %v, %v", i, w.waits(), w.err())
			}
		}
		pass(time.Second)
		if !await(s, time.Minute, 1, c()).waits() {
			t.Error("none waits after one has gone")
		}
		pass(time.Minute)
	})
}

// RESERVE takes at once and tells how long to wait.
func TestReserve(t *testing.T) {
	reserve := func(s *store.Store, most time.Duration, cost int64, calls ...store.Call) *waiter {
		return ask(s, store.Reserve, most, cost, calls...)
	}
	inBubble(t, func(t *testing.T, s *store.Store) {
		const a, b = "10/1s,burst=1", "5/1s,burst=1"
		for i, want := range []uint64{0, 1e8, 2e8, 3e8} {
			if w := reserve(s, time.Second, 1, call(t, "k", a)); !w.granted() || w.reqs[0].Terms.WaitNS != want || w.taken().Granted != 1 || w.taken().RetryAfterNS != cell.Never {
				t.Errorf("%d: %+v, %+v", i, w.taken(), w.reqs[0].Terms)
			}
		}
		if w := reserve(s, 399*time.Millisecond, 1, call(t, "k", a)); !w.denied() || w.reqs[0].Terms.WaitNS != 0 || w.taken().RetryAfterNS != 4e8 || w.taken().Granted != 0 {
			t.Errorf("too long: %+v", w.taken())
		}
		if w := reserve(s, time.Hour, 1, call(t, "k", a), call(t, "l", "5/1s,algo=log")); w.err() != store.ErrNotBookable {
			t.Error(w.err())
		}
		// The wait is the longest, and each state takes all that is asked of it.
		plainly(s, 1, call(t, "m", b))
		if w := reserve(s, time.Second, 1, call(t, "k", a), call(t, "m", b), call(t, "n", b)); !w.granted() || w.reqs[0].Terms.WaitNS != 4e8 {
			t.Errorf("three: %+v, %+v", w.taken(), w.reqs[0].Terms)
		}
		for key, retry := range map[string]uint64{"m": 4e8, "n": 2e8} {
			if w := plainly(s, 1, call(t, key, b)); w.taken().RetryAfterNS != retry {
				t.Errorf("%s: %+v", key, w.taken())
			}
		}
		const twice = "10/1s,burst=2"
		plainly(s, 2, call(t, "d", twice))
		if w := reserve(s, time.Second, 1, call(t, "d", twice), call(t, "d", twice)); !w.granted() || w.reqs[0].Terms.WaitNS != 2e8 || plainly(s, 1, call(t, "d", twice)).taken().RetryAfterNS != 3e8 {
			t.Errorf("twice: %+v, %+v", w.taken(), w.reqs[0].Terms)
		}
		if w := plainly(s, 1, call(t, "k", a)); w.taken().RetryAfterNS != 5e8 {
			t.Errorf("k: %+v", w.taken())
		}
	})
	// Behind those who wait it overtakes nobody, and is overtaken by nobody.
	inBubble(t, func(t *testing.T, s *store.Store) {
		start := clock()
		c := func() store.Call { return call(t, "k", "10/1s,burst=1") }
		plainly(s, 1, c())
		first := await(s, time.Second, 1, c())
		r := reserve(s, time.Second, 1, c())
		last := await(s, time.Second, 1, c())
		if r.reqs[0].Terms.WaitNS != 2e8 || !r.granted() {
			t.Errorf("%+v, %+v", r.taken(), r.reqs[0].Terms)
		}
		if callers, _ := s.Waiting(); callers != 2 {
			t.Errorf("%d wait", callers)
		}
		pass(time.Second)
		if first.at(start) != 100*time.Millisecond || last.at(start) != 300*time.Millisecond {
			t.Errorf("they pass after %v and %v", first.at(start), last.at(start))
		}
	})
}

// A call of several limits takes nothing before it takes all, and waits for each in its turn.
func TestSeveralLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		const slow, fast = "1/1s,burst=1", "10/1s,burst=1"
		start := clock()
		plainly(s, 1, call(t, "a", slow))
		both := await(s, time.Minute, 1, call(t, "a", slow), call(t, "b", fast)) // waits for a
		if !plainly(s, 1, call(t, "b", fast)).granted() {
			t.Error("it holds what it does not have yet")
		}
		time.Sleep(950 * time.Millisecond)
		var fasts []*waiter
		for range 3 {
			fasts = append(fasts, await(s, time.Minute, 1, call(t, "b", fast)))
		}
		pass(10 * time.Second)
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
	inBubble(t, func(t *testing.T, s *store.Store) {
		const l = "10/1s,burst=1"
		var all []*waiter
		for i := range 300 {
			keys := []string{"a", "b", "c"}
			calls := []store.Call{call(t, keys[i%3], l), call(t, keys[(i+1+i/3%2)%3], l)}
			all = append(all, await(s, time.Hour, 1, calls...))
		}
		pass(time.Minute)
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
		s := store.New(store.Options{Now: clock, MaxKeys: 4, Shards: 1})
		const l = "1/1h"
		plainly(s, 1, call(t, "waited", l))
		w := await(s, 2*time.Hour, 1, call(t, "waited", l))
		for i := range 100 {
			if got := plainly(s, 1, call(t, string(rune('a'+i)), l)); !got.granted() {
				t.Fatal(got.err())
			}
		}
		if !w.waits() {
			t.Fatal("it passes")
		}
		s.SetLimits(1, 0, false)
		if n := s.Len(clock()); n != 1 || !w.waits() {
			t.Errorf("%d keys, waits %v", n, w.waits())
		}
		if got := plainly(s, 1, call(t, "x", l)); got.err() != store.ErrFull {
			t.Errorf("where all keys are waited for: %+v, %v", got.taken(), got.err())
		}
		w.leave(nil)
		if got := plainly(s, 1, call(t, "x", l)); !got.granted() {
			t.Error(got.err())
		}
	})
}

// Where there is no room when the turn comes, the caller is told so, and a reservation is let go.
func TestNoRoomAtTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(store.Options{Now: clock, MaxKeys: 1, NoEviction: true, Shards: 1})
		const l = "1/1s,burst=1"
		plainly(s, 1, call(t, "k", l))
		first := await(s, time.Minute, 1, call(t, "k", l))
		ask(s, store.Reserve, time.Minute, 1, call(t, "k", l))
		second := await(s, time.Minute, 1, call(t, "k", l))
		s.Rename([]byte("k"), []byte("other"), clock())
		plainly(s, 1, call(t, "other", "1/1h"))
		pass(time.Minute)
		if first.err() != store.ErrFull || second.err() != store.ErrFull {
			t.Errorf("%v, %v", first.err(), second.err())
		}
		if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d callers, %d keys", callers, keys)
		}
	})
}

// Who waits is in no file: a copy has what is spent.
func TestWaitersAreNotExported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		plainly(s, 1, call(t, "k", "1/1s"))
		drain(s, func(store.Change) {})
		before, _ := s.Get([]byte("k"), at(clock()))
		changes := s.Stats(clock()).Changes
		w := await(s, time.Minute, 1, call(t, "k", "1/1s"))
		after, _ := s.Get([]byte("k"), at(clock()))
		drain(s, func(c store.Change) { t.Errorf("%+v is told", c) })
		if before != after || s.Stats(clock()).Changes != changes {
			t.Errorf("%+v before, %+v after", before, after)
		}
		w.leave(nil)
	})
}

// At any rate, and with a timer that comes late, the moments are those of the limit.
func TestTheRateOfAQueue(t *testing.T) {
	for _, c := range []struct {
		limit string
		n     int
		gap   time.Duration
	}{{"100/1s,burst=1", 1000, 10 * time.Millisecond}, {"10000/1s,burst=1", 20_000, 100 * time.Microsecond}, {"100000/1s,burst=1", 50_000, 10 * time.Microsecond}} {
		for _, late := range []time.Duration{1, 7 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				lateClock := func() int64 { return (clock() + int64(late) - 1) / int64(late) * int64(late) }
				s := store.New(store.Options{Now: lateClock, MaxWaiters: 1 << 20})
				start := clock()
				var all []*waiter
				for range c.n {
					all = append(all, await(s, time.Hour, 1, call(t, "k", c.limit)))
				}
				pass(time.Duration(c.n)*c.gap + late)
				last := all[c.n-1]
				if want := time.Duration(c.n-1) * c.gap; !last.granted() || last.at(start) < want-late || last.at(start) > want+late {
					t.Errorf("%s, late by %v: %v for %d, want %v", c.limit, late, last.at(start), c.n, want)
				}
				if retry := plainly(s, 1, call(t, "k", c.limit)).taken().RetryAfterNS; retry != cell.Never && retry > uint64(c.gap+late) {
					t.Errorf("%s: then the next waits for %v", c.limit, time.Duration(retry))
				}
			})
		}
	}
}

// A waiter takes less than 1 KB beside its request, and a store that nobody waits for any more keeps nothing.
func TestWhatAWaiterTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		s := store.New(store.Options{Now: clock, MaxWaiters: n})
		l := mustParse(t, "1/1h")
		all := make([]waiter, n)
		for i := range all {
			all[i].s = s
			all[i].reqs[0] = store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: &l}},
				TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1 << 60}}}
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		plainly(s, 1, call(t, "k", "1/1h"))
		before := heap()
		for i := range all {
			if s.TakeBatch(all[i].reqs[:], at(clock()), &all[i]) {
				t.Fatal("it does not wait")
			}
		}
		if each := (heap() - before) / n; each > 1024 {
			t.Errorf("%d bytes each", each)
		} else {
			t.Logf("%d bytes each", each)
		}
		for i := range all {
			all[(i*7919)%n].leave(nil)
		}
		if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
			t.Errorf("%d callers, %d keys", callers, keys)
		}
	})
}

// Real goroutines, real time: all that happens at once to those who wait leaves nobody behind.
func TestWaitersAtOnce(t *testing.T) {
	s := store.New(store.Options{Shards: 4, MaxWaiters: 1 << 20})
	clock := func() int64 { return time.Now().UnixNano() }
	limits := []string{"20000/1s,burst=1", "1000/10ms,algo=window", "200/10ms,algo=log", "2000/100ms,algo=slide"}
	var group sync.WaitGroup
	done := make(chan struct{})
	for worker := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 1500 {
				key, other := string(rune('a'+i%3)), string(rune('a'+(i+1)%3))
				calls := []store.Call{call(t, key, limits[(i/3+worker)%4])}
				if i%5 == 0 {
					calls = append(calls, call(t, other, limits[i%4]))
				}
				woken := make(chan struct{})
				w := wakerFunc(func() { close(woken) })
				reqs := []store.TakeRequest{{Calls: calls, TakeOptions: store.TakeOptions{Cost: int64(1 + i%3), Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e12}}}}
				if s.TakeBatch(reqs, at(clock()), w) {
					continue
				}
				if i%7 == 0 && s.Leave(&reqs[0], nil) {
					continue
				}
				if i%11 == 0 {
					s.Leave(&reqs[0], store.ErrRefused)
				}
				<-woken
			}
		}()
	}
	var others sync.WaitGroup
	others.Add(1)
	go func() {
		defer others.Done()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			key := []byte{byte('a' + i%3)}
			switch l := mustParse(t, limits[i%4]); i % 6 {
			case 0:
				_, _ = s.Give(key, &l, 0, 2, at(clock()))
			case 1:
				s.Delete(key, clock())
			case 2:
				s.Rename(key, []byte{byte('a' + (i+1)%3)}, clock())
			case 3:
				s.Sweep(clock())
			case 4:
				s.Flush()
			case 5:
				_, _ = s.SetPolicy("p", l, policy.Options{})
			}
		}
	}()
	group.Wait()
	close(done)
	others.Wait()
	if callers, keys := s.Waiting(); callers != 0 || keys != 0 {
		t.Errorf("%d callers wait for %d keys", callers, keys)
	}
}

type wakerFunc func()

func (f wakerFunc) Wake() { f() }

// A policy whose limit becomes a window has plain calls told their wait behind all who wait already.
func TestWaitersOfAPolicyThatBecomesAWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		var all []*waiter
		set := func(limit string) {
			if _, err := s.SetPolicy("p", mustParse(t, limit), policy.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		c := func() store.Call {
			p := s.PolicyNamed("p")
			return store.Call{Key: []byte("k"), Limit: &p.Limit, Policy: p.ID}
		}
		set("1/1h")
		for range 60 {
			all = append(all, await(s, 100*time.Hour, 1, c()))
		}
		set("1/1h,algo=window")
		pass(time.Millisecond)
		if w := plainly(s, 1, c()); !w.denied() {
			t.Errorf("%+v, %v", w.taken(), w.err())
		}
		for _, w := range all {
			w.leave(nil)
		}
	})
}

// A call that is refused at the moment at which it is granted is answered once. The race detector watches.
func TestRefusedWhenGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store) {
		for range 50 {
			plainly(s, 1, call(t, "k", "1/1s,burst=1"))
			w := await(s, time.Minute, 1, call(t, "k", "1/1s,burst=1"))
			time.Sleep(time.Second) // without Wait: its timer runs now
			runtime.Gosched()
			refused := w.leave(store.ErrRefused)
			synctest.Wait()
			if w.woken.Load() != 1 || refused && w.waits() {
				t.Fatalf("refused %v, woken %d times", refused, w.woken.Load())
			}
			pass(time.Minute)
		}
	})
}
