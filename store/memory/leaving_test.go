package memory_test

import (
	"runtime"
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

// One that is still there at its deadline is answered as a plain call is, and blocked as one.
func TestDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		start := clock()
		c := func() store.Call { return memtest.Call(t, "k", "1/1s,algo=log,block=5s") }
		plainly(s, 1, c())
		first, second := await(s, time.Second, 1, c()), await(s, 1500*time.Millisecond, 1, c())
		if !first.waits() || !second.waits() {
			t.Fatal("they do not wait")
		}
		celldtest.Pass(3 * time.Second)
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
	inBubble(t, func(t *testing.T, s *memory.Store) {
		c := func() store.Call { return memtest.Call(t, "k", "10/1s,block=5s") }
		plainly(s, 9, c())
		w := await(s, 10*time.Second, 5, c())
		if d := await(s, 0, 1, c()); !d.denied() || d.taken().RetryAfterNS != 5e9 || !w.waits() {
			t.Errorf("%+v", d.taken())
		}
		start := clock()
		celldtest.Pass(time.Minute)
		if w.at(start) != 5*time.Second || !w.granted() {
			t.Errorf("who waits passes after %v", w.at(start))
		}
	})
}

// A call that can never pass, or may not wait, is denied at once.
func TestWhoDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		c := func() store.Call { return memtest.Call(t, "k", "1/1s") }
		plainly(s, 1, c())
		if w := await(s, time.Hour, 2, c()); !w.denied() || w.taken().RetryAfterNS != cell.Never {
			t.Errorf("above capacity: %+v", w.taken())
		}
		for _, most := range []time.Duration{-1, 0, time.Second - 1} {
			if w := await(s, most, 1, c()); !w.denied() || w.taken().RetryAfterNS != 1e9 {
				t.Errorf("WAIT %v: %+v", most, w.taken())
			}
		}
		reqs := []store.TakeRequest{{Calls: []store.Call{c()}, TakeOptions: store.TakeOptions{Cost: 1,
			Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e10}}}}
		if !s.TakeBatch(reqs, memtest.At(clock()), nil) || !reqs[0].Taken.Limited {
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

// A call that may wait for no time is denied at once as one that does not wait, also where it is not known how long it would have to:
// it needs no place, and is coalesced with nobody.
func TestAWaitOfNoTime(t *testing.T) {
	for _, limit := range []string{"1/1h,algo=conc", "1/1h", "1/1h,algo=log"} {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			s.SetMaxWaiters(1)
			one := func() store.Call { return memtest.Call(t, "k", limit) }
			job(s, "x", 0, 1, one())
			first := job(s, "y", 2*time.Hour, 1, one())
			for _, most := range []time.Duration{-1, 0} {
				if w := job(s, "y", most, 1, one()); !w.denied() || w.woken.Load() != 0 || w.taken().RetryAfterNS < uint64(hour) {
					t.Errorf("%s, %v: %+v, %v, waits %v", limit, most, w.taken(), w.err(), w.waits())
				}
			}
			if callers, _ := s.Waiting(); callers != 1 {
				t.Errorf("%s: %d wait", limit, callers)
			}
			first.leave(nil)
		})
	}
}

// A call that is refused at the moment at which it is granted is answered once. The race detector watches.
func TestRefusedWhenGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		for range 50 {
			plainly(s, 1, memtest.Call(t, "k", "1/1s,burst=1"))
			w := await(s, time.Minute, 1, memtest.Call(t, "k", "1/1s,burst=1"))
			time.Sleep(time.Second) // without Wait: its timer runs now
			runtime.Gosched()
			refused := w.leave(store.ErrRefused)
			synctest.Wait()
			if w.woken.Load() != 1 || refused && w.waits() {
				t.Fatalf("refused %v, woken %d times", refused, w.woken.Load())
			}
			celldtest.Pass(time.Minute)
		}
	})
}

// A waiter is answered by its deadline on the clock of its store, also where that is behind the timers or ahead of them.
func TestDeadlinesOfAnotherClock(t *testing.T) {
	const most = 12 * time.Millisecond
	for _, c := range []struct {
		name   string
		clock  func() int64
		denied time.Duration
	}{
		{"as they are", clock, most},
		{"behind", func() int64 { return clock() / 7e6 * 7e6 }, 17 * time.Millisecond}, // 5 ms are left when the timer comes
		{"ahead", func() int64 { return (clock() + 49e6) / 50e6 * 50e6 }, most},        // past the moment, which is past the deadline
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := clock() / 350e6 * 350e6
				celldtest.Pass(time.Duration(start + 350e6 - clock()))
				start = clock()
				s := memory.New(memory.Options{Now: c.clock})
				one := func() store.Call { return memtest.Call(t, "k", "100/1s,burst=1") }
				plainly(s, 1, one())
				w := await(s, most, 1, one())
				celldtest.Pass(5 * time.Millisecond)
				if _, err := s.Take([]store.Call{one()}, store.TakeOptions{Cost: 1, Mode: cell.Force}, memtest.At(clock())); err != nil {
					t.Fatal(err)
				}
				if celldtest.Pass(time.Second); !w.denied() || w.at(start) != c.denied || w.woken.Load() != 1 {
					t.Errorf("after %v: %+v, %v", w.at(start), w.taken(), w.err())
				}
			})
		})
	}
}

// A wait that is refused is answered as a plain call is at that instant, and the request may wait again.
func TestRefusedAfterAChange(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *memory.Store)
		want   error
	}{
		{"nothing", func(*memory.Store) {}, nil},
		{"its policy is deleted", func(s *memory.Store) { s.DeletePolicy("p") }, policy.ErrNoPolicy},
		{"the key holds another kind", func(s *memory.Store) { _ = memtest.Put(s, "k", memtest.Live(clock(), hour), clock()) }, store.ErrWrongType},
	} {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			setPolicy(t, s, "1/1h")
			plainly(s, 1, ofPolicy(s))
			w := await(s, 2*time.Hour, 1, ofPolicy(s))
			c.change(s)
			if !w.leave(store.ErrRefused) || w.woken.Load() != 1 || w.err() != c.want || w.taken().Limited != (c.want == nil) {
				t.Errorf("%s: %+v, %v", c.name, w.taken(), w.err())
			}
			if terms := w.reqs[0].Terms; terms.Mode != store.Wait || terms.MaxNS != int64(2*time.Hour) {
				t.Errorf("%s: %+v", c.name, terms)
			}
		})
	}
}
