package waits

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/view"
)

// errUnblocked is a reason to leave that becomes the call's error.
var errUnblocked = errors.New("unblocked")

// nobodyWaits waits until the last line has gone, too.
func (s *Store) nobodyWaits(t *testing.T) {
	t.Helper()
	celldtest.Eventually(t, "nobody waits", func() bool {
		callers, keys := s.Waiting()
		s.waits.mu.Lock()
		defer s.waits.mu.Unlock()
		return callers == 0 && keys == 0 && s.waits.named() == 0
	})
}

// What lets those go who wait, in this process and in others, at once: they look again in an hour only.
func TestWhatLetsWaitersGo(t *testing.T) {
	t.Parallel()
	const lasts = "3/1h,algo=conc"
	for _, c := range []struct {
		name, limit string
		free        func(t *testing.T, s *Store, lease int64)
	}{
		{"a lease is released", lasts, func(t *testing.T, s *Store, id int64) { s.release(t, "k", id) }},
		{"given back", "3/1h", func(t *testing.T, s *Store, _ int64) { s.give(t, "k", "3/1h") }},
		{"given back to a log", "3/1h,algo=log", func(t *testing.T, s *Store, _ int64) { s.give(t, "k", "3/1h,algo=log") }},
		{"deleted", "3/1h", func(t *testing.T, s *Store, _ int64) {
			s.changed(t, "k", func(v *view.View) { v.Delete([]byte("k"), v.NowNS) })
		}},
		{"a higher limit", "@p", func(t *testing.T, s *Store, _ int64) { setPolicyOf(t, s, "p", "1000000/1h", policy.Options{}) }},
		{"reset", "@p", func(t *testing.T, s *Store, _ int64) { setPolicyOf(t, s, "p", "3/1h", policy.Options{Reset: true}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := testStores(t, 2)
			for _, s := range all {
				s.waits.lookAgain = time.Hour
			}
			of := func(s *Store) store.Call {
				if c.limit == "@p" {
					return policyCall(s, "k", "p")
				}
				return takeCall(t, "k", c.limit)
			}
			if c.limit == "@p" {
				setPolicyOf(t, all[0], "p", "3/1h", policy.Options{})
				for _, s := range all {
					s.settings.Start()
					t.Cleanup(s.settings.Close)
				}
			}
			holder := all[0].askOn(t, store.Terms{MaxNS: 1}, 3, of(all[0]))
			if holder.answered().Limited {
				t.Fatal("it is denied")
			}
			waiter := all[1].await(t, 24*time.Hour, 1, of(all[1]))
			all[1].waitFor(t, 1)
			celldtest.Eventually(t, "it listens", func() bool {
				client := all[0].link.Client()
				n, err := client.Do(t.Context(), client.B().PubsubNumsub().Channel("celld:wake").Build()).ToArray()
				if err != nil {
					t.Fatal(err)
				}
				count, _ := n[1].AsInt64()
				return count > 0
			})
			c.free(t, all[0], holder.reqs[0].Terms.Lease)
			if waiter.answered().Limited {
				t.Error("it is denied")
			}
		})
	}
}

// Those behind one who leaves move up into its grant. What is booked last is given back if nobody has booked behind it, and only then.
func TestWhoLeavesGivesItsGrant(t *testing.T) {
	for _, behind := range []bool{false, true} {
		all := testStores(t, 2)
		s := all[0]
		s.waits.lookahead = time.Minute // all are booked at once
		const limit = "1/10s,burst=1"
		s.plainly(t, 1, takeCall(t, "k", limit))
		var waiters []*caller
		for i := range 4 {
			waiters = append(waiters, s.await(t, time.Hour, 1, takeCall(t, "k", limit)))
			celldtest.Eventually(t, "it is booked", func() bool {
				s.waits.mu.Lock()
				defer s.waits.mu.Unlock()
				for _, of := range s.waits.lines.OfKey {
					return len(of[0].grants) == i+1
				}
				return false
			})
		}
		reserve := func(s *Store) time.Duration {
			t.Helper()
			c := s.askOn(t, store.Terms{Mode: store.Reserve, MaxNS: int64(time.Hour)}, 1, takeCall(t, "k", limit))
			if c.answered().Limited {
				t.Fatal("it is denied")
			}
			return time.Duration(c.reqs[0].Terms.WaitNS).Round(10 * time.Second)
		}
		if behind {
			if got := reserve(all[1]); got != 50*time.Second {
				t.Errorf("behind four: %v", got)
			}
		}
		for _, leaves := range []int{1, 3} {
			if !s.Leave(&waiters[leaves].reqs[0], nil) {
				t.Error("it does not wait")
			}
		}
		s.waits.mu.Lock()
		for _, of := range s.waits.lines.OfKey {
			l := of[0]
			for i, want := range []time.Duration{10 * time.Second, 20 * time.Second} {
				got := time.Until(l.grants[i].at).Round(10 * time.Second)
				if got != want || l.Waiters[i].Request != &waiters[[]int{0, 2}[i]].reqs[0] {
					t.Errorf("%d goes ahead in %v, want %v", i, got, want)
				}
			}
			if len(l.grants) != 2 {
				t.Errorf("%d slots", len(l.grants))
			}
		}
		s.waits.mu.Unlock()
		want := 30 * time.Second
		if behind {
			want = 60 * time.Second
		}
		if got := reserve(s); got != want {
			t.Errorf("the next goes ahead in %v, want %v; another has booked behind: %v", got, want, behind)
		}
	}
}

// A wait ends as it is told to: refused, with an error, at its deadline, when its policy has gone, or when the engine fails.
func TestHowAWaitEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		longest time.Duration
		ends    func(t *testing.T, s *Store, w *caller)
		limited bool
		err     error
	}{
		"refused": {time.Hour, func(_ *testing.T, s *Store, w *caller) {
			if !s.Leave(&w.reqs[0], store.ErrRefused) {
				t.Error("it does not wait")
			}
		}, true, nil},
		"unblocked": {time.Hour, func(_ *testing.T, s *Store, w *caller) { s.Leave(&w.reqs[0], errUnblocked) }, false, errUnblocked},
		"deadline":  {300 * time.Millisecond, func(*testing.T, *Store, *caller) {}, true, nil},
		"no policy": {time.Hour, func(t *testing.T, s *Store, _ *caller) {
			if _, err := linktest.Told(t, func(done func(bool, error)) { s.settings.DeletePolicy("p", done) }); err != nil {
				t.Fatal(err)
			}
		}, false, policy.ErrNoPolicy},
		"no engine": {time.Hour, func(t *testing.T, s *Store, _ *caller) {
			s.link.Client().Close()
			s.waits.pokeAll()
		}, false, &link.DownError{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStores(t, 1)[0]
			setPolicyOf(t, s, "p", "1/1h,algo=conc", policy.Options{})
			s.plainly(t, 1, policyCall(s, "k", "p"))
			w := s.await(t, c.longest, 1, policyCall(s, "k", "p"))
			s.waitFor(t, 1)
			c.ends(t, s, w)
			select {
			case <-w.done:
			case <-time.After(time.Minute):
				t.Fatal("no answer")
			}
			var down *link.DownError
			if err := w.reqs[0].Err; !errors.Is(err, c.err) && !(errors.As(c.err, &down) && errors.As(err, &down)) {
				t.Errorf("%v", err)
			}
			if got := w.reqs[0].Taken; got.Limited != c.limited || got.Limited && got.RetryAfterNS < uint64(59*time.Minute) {
				t.Errorf("%+v", got)
			}
			s.nobodyWaits(t)
		})
	}
}

// Calls of several processes for two of three keys each, in any order, all pass: nobody holds one and waits for another.
func TestWaitersOfSeveralKeys(t *testing.T) {
	t.Parallel()
	all := testStores(t, 2)
	rnd := celldtest.NewRand(t)
	var callers sync.WaitGroup
	for i, s := range all {
		for range 8 {
			rnd := rand.New(rand.NewPCG(rnd.Uint64(), uint64(i)))
			callers.Go(func() {
				for range 8 {
					from := rnd.IntN(3)
					limits := []string{"1/1h,algo=conc", "200/1s,burst=1", "1/1h,algo=conc"}
					a, b := from, (from+1+rnd.IntN(2))%3
					w := s.askOn(t, store.Terms{Mode: store.Wait, MaxNS: int64(time.Hour)}, 1, takeCall(t, fmt.Sprint(a), limits[a]),
						takeCall(t, fmt.Sprint(b), limits[b]))
					if w.answered().Limited {
						t.Error("it is denied")
					}
					s.release(t, fmt.Sprint(a), w.reqs[0].Terms.Lease)
				}
			})
		}
	}
	callers.Wait()
	for _, s := range all {
		s.nobodyWaits(t)
	}
}

// Who waits passes, though another process asks for the same all the time.
func TestPlainCallsElsewhereDoNotStarveWaiters(t *testing.T) {
	all := testStores(t, 2)
	const limit = "50/1s,burst=1"
	stop := make(chan struct{})
	var hammer sync.WaitGroup
	for range 4 {
		hammer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					all[1].plainly(t, 1, takeCall(t, "k", limit))
				}
			}
		})
	}
	var waiters []*caller
	for range 20 {
		waiters = append(waiters, all[0].await(t, time.Hour, 1, takeCall(t, "k", limit)))
	}
	for _, w := range waiters {
		w.answered()
	}
	t.Log(waiters[19].ended.Sub(waiters[0].began))
	close(stop)
	hammer.Wait()
}

// A RESERVE comes behind those who wait in its process: they are booked before it. One that would wait too long books nothing.
func TestReserveBehindWaiters(t *testing.T) {
	all := testStores(t, 2)
	s := all[0]
	const limit = "1/10s,burst=1"
	s.plainly(t, 1, takeCall(t, "k", limit))
	var waiters []*caller
	for i := range 2 {
		waiters = append(waiters, s.await(t, time.Hour, 1, takeCall(t, "k", limit)))
		s.waitFor(t, i+1)
	}
	reserve := func(s *Store, longest time.Duration) *caller {
		t.Helper()
		c := s.askOn(t, store.Terms{Mode: store.Reserve, MaxNS: int64(longest)}, 1, takeCall(t, "k", limit))
		c.answered()
		return c
	}
	if c := reserve(s, 15*time.Second); !c.reqs[0].Taken.Limited ||
		time.Duration(c.reqs[0].Taken.RetryAfterNS).Round(10*time.Second) != 30*time.Second {
		t.Errorf("%+v", c.reqs[0].Taken)
	}
	for i, want := range []time.Duration{30 * time.Second, 40 * time.Second} {
		if c := reserve(all[i], time.Hour); c.reqs[0].Taken.Limited || time.Duration(c.reqs[0].Terms.WaitNS).Round(10*time.Second) != want {
			t.Errorf("%d: %+v in %v, want %v", i, c.reqs[0].Taken, time.Duration(c.reqs[0].Terms.WaitNS), want)
		}
	}
	s.waits.mu.Lock()
	for _, of := range s.waits.lines.OfKey {
		if n := len(of[0].grants); n != 2 {
			t.Errorf("%d slots of two who wait", n)
		}
	}
	s.waits.mu.Unlock()
	for _, w := range waiters {
		s.Leave(&w.reqs[0], nil)
	}
	s.nobodyWaits(t)
}
