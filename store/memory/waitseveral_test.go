package memory_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// crowd keeps so many callers waiting for each of some limits, each for one, until an instant. An answer counts for its limit.
func crowd(t *testing.T, s *memory.Store, each int, forNS int64, limits ...string) (answers []atomic.Int64) {
	end := clock() + forNS
	answers = make([]atomic.Int64, len(limits))
	for i, limit := range limits {
		for range each {
			go func() {
				for clock() < end {
					done := make(chan struct{})
					c := memtest.Call(t, string(rune('a'+i)), limit)
					reqs := []store.TakeRequest{{Calls: []store.Call{c}, TakeOptions: store.TakeOptions{Cost: 1,
						Terms: &store.Terms{Mode: store.Wait, MaxNS: forever}}}}
					if !s.TakeBatch(reqs, memtest.At(clock()), wakerFunc(func() { close(done) })) {
						<-done
					}
					answers[i].Add(1)
					if c.Limit.Algo == cell.Conc {
						time.Sleep(70 * time.Millisecond)
						s.Release(c.Key, reqs[0].Terms.Lease, memtest.At(clock()))
					}
				}
			}()
		}
	}
	return answers
}

// A call of several limits passes, however many wait for each of them at any time, after those that were there before it and one moment
// of each limit.
func TestSeveralBusyLimits(t *testing.T) {
	for _, limits := range []string{
		"10/1s,burst=1 10/1s,burst=1", "10/1s,burst=1 1/1s,burst=1", "1/1s,burst=1 10/1s,burst=1",
		"7/1s,burst=1 11/1s,burst=1 13/1s,burst=1", "10/1s,algo=window 10/1s,burst=1", "10/1s,algo=log 10/1s,burst=1",
		"10/1s,algo=slide 9/1s,burst=1", "3/10s,algo=conc 10/1s,burst=1", "10/1s,burst=1 3/10s,algo=conc", "1000/1s,burst=1 999/1s,burst=1",
	} {
		inBubble(t, func(t *testing.T, s *memory.Store) {
			each := strings.Fields(limits)
			crowd(t, s, 4, int64(30*time.Second), each...)
			pass(5050 * time.Millisecond)
			for range 3 {
				var calls []store.Call
				for i, limit := range each {
					calls = append(calls, memtest.Call(t, string(rune('a'+i)), limit))
				}
				begun := clock()
				w := takeLease(s, store.Terms{Mode: store.Wait, MaxNS: forever}, 1, calls...)
				pass(8 * time.Second)
				if !w.granted() {
					t.Errorf("%s: it waits for %v", limits, time.Duration(clock()-begun))
				} else {
					t.Log(limits, w.at(begun))
				}
				s.Release([]byte("a"), w.lease(), memtest.At(clock()))
				w.leave(nil)
			}
			pass(30 * time.Second)
		})
	}
}

// A fast limit is not stopped for those who also wait for a slow one.
func TestASlowLimitDoesNotStopAFastOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const fast, slow = "1000/1s,burst=1", "1/10s,burst=1"
		answers := crowd(t, s, 20, int64(52*time.Second), fast)
		pass(time.Second)
		for range 5 {
			w := await(s, 20*time.Second, 1, memtest.Call(t, "a", fast), memtest.Call(t, "b", slow)) // for the fast one
			if !plainly(s, 1, memtest.Call(t, "b", slow)).granted() {                                // which takes the slow one before it
				t.Fatal("the slow one does not pass")
			}
			pass(10*time.Second + 50*time.Millisecond)
			w.leave(nil)
			s.Delete([]byte("b"), clock())
		}
		pass(10 * time.Second)
		if n := answers[0].Load(); n < 51_900 {
			t.Errorf("%d calls in 52 s", n)
		}
	})
}

// Who waits for one limit keeps another from those who came later, for as long as it takes to earn again what it asks of it, and no
// longer: until it passes, or leaves, or has to wait for more than that.
func TestWhoWaitsKeepsAnotherLimit(t *testing.T) {
	const slow, shared = "10/1500ms,burst=1", "10/1s,burst=2" // one call earns its two of shared again in 200 ms
	for _, c := range []struct {
		name        string
		busyNS      int64 // how long slow is busy when shared passes
		at250       func(s *memory.Store, both *waiter)
		both, other time.Duration // when they pass; 0: never
	}{
		{name: "long", busyNS: 140e6, both: 340, other: 440},
		{name: "as long as may be", busyNS: 200e6, both: 400, other: 500},
		{name: "too long", busyNS: 201e6, both: 401, other: 200},
		{name: "it leaves", busyNS: 140e6, at250: func(_ *memory.Store, both *waiter) { both.leave(nil) }, other: 250},
		{name: "it has to wait for longer", busyNS: 140e6, both: 1840, other: 342, at250: func(s *memory.Store, _ *waiter) {
			_, _ = s.Take(memtest.Calls(t, "slow", slow), store.TakeOptions{Cost: 10, Mode: cell.Force}, memtest.At(clock()))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *memory.Store) {
				start := clock()
				plainly(s, 2, memtest.Call(t, "k", shared))
				both := await(s, time.Minute, 1, memtest.Calls(t, "slow", slow, "k", shared, "k", shared)...) // for shared, until 200 ms
				pass(50 * time.Millisecond)
				other := await(s, time.Minute, 1, memtest.Call(t, "k", shared))
				pass(50 * time.Millisecond)
				memtest.MustTake(t, s, 1, start+50e6+c.busyNS, memtest.Calls(t, "slow", slow)) // by a clock that is ahead
				pass(150 * time.Millisecond)
				if c.at250 != nil {
					c.at250(s, both)
				}
				pass(10 * time.Second)
				for i, w := range []*waiter{both, other} {
					want := []time.Duration{c.both, c.other}[i] * time.Millisecond
					if w.granted() != (want > 0) || want > 0 && w.at(start) != want {
						t.Errorf("%d passes after %v, want %v: %+v", i, w.at(start), want, w.taken())
					}
				}
			})
		})
	}
}
