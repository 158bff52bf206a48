package memory_test

import (
	"errors"
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

// A plain call is told exactly when it passes behind those who wait for a window, whoever comes, leaves, or goes to another line.
func TestWhatIsToldBehindAWindow(t *testing.T) {
	told := func(t *testing.T, s *memory.Store, limit string, want time.Duration) {
		t.Helper()
		if w := plainly(s, 1, memtest.Call(t, "k", limit)); !w.denied() || w.taken().RetryAfterNS != uint64(want) {
			t.Errorf("it is told %v, want %v", time.Duration(w.taken().RetryAfterNS), want)
		}
	}
	const one, three = "1/1s,algo=window", "3/1s,algo=window"
	t.Run("come and leave", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			plainly(s, 1, memtest.Call(t, "k", one))
			var all []*waiter
			for i := range 5 {
				told(t, s, one, time.Duration(i+1)*time.Second)
				all = append(all, await(s, time.Minute, 1, memtest.Call(t, "k", one)))
			}
			all[2].leave(nil) // neither the first nor the last
			told(t, s, one, 5*time.Second)
			all[4].leave(nil)
			told(t, s, one, 4*time.Second)
			all[0].leave(nil)
			told(t, s, one, 3*time.Second)
			celldtest.Pass(time.Minute)
		})
	})
	t.Run("to another queue", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			const slow = "1/10s,burst=1"
			plainly(s, 1, memtest.Call(t, "k", one))
			both := await(s, time.Minute, 1, memtest.Call(t, "k", one), memtest.Call(t, "slow", slow))
			for range 2 {
				await(s, time.Minute, 1, memtest.Call(t, "k", one))
			}
			plainly(s, 1, memtest.Call(t, "slow", slow))
			told(t, s, one, 4*time.Second)
			celldtest.Pass(1500 * time.Millisecond) // the first has gone, and the second has passed
			told(t, s, one, 1500*time.Millisecond)
			celldtest.Pass(time.Minute)
			if !both.granted() {
				t.Errorf("%+v", both.taken())
			}
		})
	})
	t.Run("from another queue", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			const slow = "10/15s,burst=2" // two in 3 s
			plainly(s, 2, memtest.Call(t, "slow", slow))
			start := clock()
			both := await(s, time.Minute, 2, memtest.Call(t, "k", three), memtest.Call(t, "slow", slow))
			celldtest.Pass(100 * time.Millisecond)
			plainly(s, 3, memtest.Call(t, "k", three))
			var all []*waiter
			for _, cost := range []int64{3, 3, 2, 1} {
				all = append(all, await(s, time.Minute, cost, memtest.Call(t, "k", three)))
			}
			celldtest.Pass(2800 * time.Millisecond)
			told(t, s, three, 1200*time.Millisecond) // behind 2 and 1, which pass together
			celldtest.Pass(150 * time.Millisecond)
			told(t, s, three, 2050*time.Millisecond) // behind 2, and then 2 and 1
			celldtest.Pass(time.Minute)
			for i, want := range []time.Duration{1100, 2100, 4100, 4100} {
				if got := all[i].at(start); got != want*time.Millisecond {
					t.Errorf("%d passes after %v", i, got)
				}
			}
			if got := both.at(start); got != 3100*time.Millisecond {
				t.Errorf("both pass after %v", got)
			}
		})
	})
}

// A call whose policy changes while it comes goes by the new limit, which begins anew if it is not alike.
func TestAPolicyThatChangesAsACallComes(t *testing.T) {
	for to, after := range map[string]time.Duration{"60/1h,burst=1": time.Minute, "1/1s": 0, "1/1h,algo=log": 0} {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			start := clock()
			setPolicy(t, s, "1/1h")
			late := ofPolicy(s)
			plainly(s, 1, late)
			setPolicy(t, s, to)
			w := await(s, 2*time.Hour, 1, late)
			if celldtest.Pass(time.Minute); !w.granted() || w.at(start) != after {
				t.Errorf("%s: after %v: %+v, %v", to, w.at(start), w.taken(), w.err())
			}
			w.leave(nil)
		})
	}
}

// setPolicy sets policy p, of which ofPolicy is a call of key k.
func setPolicy(t *testing.T, s *memory.Store, limit string) {
	t.Helper()
	if ok, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, limit)}, policy.Options{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

func ofPolicy(s *memory.Store) store.Call {
	p := s.PolicyNamed("p")
	return store.CallOf([]byte("k"), p.Limits[0])
}

// Whoever waits for a policy that goes, or that becomes too small for the call, is told so at once.
func TestWhoWaitsForAPolicyThatGoes(t *testing.T) {
	for _, carried := range []bool{false, true} { // by another call, before they are looked at
		inBubble(t, func(t *testing.T, s *memory.Store) { waitForAPolicyThatGoes(t, s, carried) })
	}
}

func waitForAPolicyThatGoes(t *testing.T, s *memory.Store, carried bool) {
	setPolicy(t, s, "2/1h")
	plainly(s, 2, ofPolicy(s))
	start := clock()
	large, small := await(s, 9*time.Hour, 2, ofPolicy(s)), await(s, 9*time.Hour, 1, ofPolicy(s))
	other := await(s, 9*time.Hour, 1, ofPolicy(s))
	setPolicy(t, s, "1/1h")
	if carried {
		plainly(s, 1, ofPolicy(s))
	}
	celldtest.Pass(time.Second)
	if d := large.reqs[0].Calls[0].Decision; !large.denied() || large.at(start) != 0 || large.taken().RetryAfterNS != cell.Never ||
		d.ResetAfterNS > 2*uint64(hour) || !small.waits() {
		t.Errorf("too small: after %v: %+v, %+v", large.at(start), large.taken(), d)
	}
	s.DeletePolicy("p")
	synctest.Wait()
	for i, w := range []*waiter{small, other} {
		if w.waits() || w.err() != policy.ErrNoPolicy || w.at(start) != time.Second {
			t.Errorf("%d: after %v: %+v, %v", i, w.at(start), w.taken(), w.err())
		}
	}
}

// Who waits carries the state over to the limit of today, and the key ends when that does. That may need room.
func TestACarriedStateOfWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		for _, limit := range []string{"1/1h", "2/1h,burst=1", "5/1h,burst=2"} {
			setPolicy(t, s, limit)
			if first := plainly(s, 1, ofPolicy(s)); limit == "1/1h" && !first.granted() {
				t.Fatal(first.err())
			}
			setPolicy(t, s, "3/1h,burst=1")
			w := await(s, 100*time.Hour, 1, ofPolicy(s))
			memtest.MustAudit(t, s)
			if !w.waits() {
				t.Errorf("%s: %+v, %v", limit, w.taken(), w.err())
			}
			w.leave(nil)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{Now: clock, Shards: 1, NoEviction: true})
		setPolicy(t, s, "5/1h,algo=slide")
		plainly(s, 5, ofPolicy(s))
		memtest.SetMaxBytes(&s.Capacity, s.Stats(clock()).Bytes)
		setPolicy(t, s, "5/1h,algo=slide,buckets=128")
		w := await(s, 9*time.Hour, 1, ofPolicy(s))
		if callers, _ := s.Waiting(); !errors.Is(w.err(), store.ErrFull) || callers != 0 {
			t.Errorf("%+v, %v, %d wait", w.taken(), w.err(), callers)
		}
		memtest.MustAudit(t, s)
	})
}
