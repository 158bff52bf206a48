//go:build !race

package memory_test

// Minutes of fake time in which many wait: with the race detector they take ten times as long. It watches fewer who wait in other tests.

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
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
			celldtest.Pass(5050 * time.Millisecond)
			for range 3 {
				var calls []store.Call
				for i, limit := range each {
					calls = append(calls, memtest.Call(t, string(rune('a'+i)), limit))
				}
				begun := clock()
				w := takeLease(s, store.Terms{Mode: store.Wait, MaxNS: forever}, 1, calls...)
				celldtest.Pass(8 * time.Second)
				if !w.granted() {
					t.Errorf("%s: it waits for %v", limits, time.Duration(clock()-begun))
				} else {
					t.Log(limits, w.at(begun))
				}
				s.Release([]byte("a"), w.lease(), memtest.At(clock()))
				w.leave(nil)
			}
			celldtest.Pass(30 * time.Second)
		})
	}
}

// A fast limit is not stopped for those who also wait for a slow one.
func TestASlowLimitDoesNotStopAFastOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const fast, slow = "1000/1s,burst=1", "1/10s,burst=1"
		answers := crowd(t, s, 20, int64(52*time.Second), fast)
		celldtest.Pass(time.Second)
		for range 5 {
			w := await(s, 20*time.Second, 1, memtest.Call(t, "a", fast), memtest.Call(t, "b", slow)) // for the fast one
			if !plainly(s, 1, memtest.Call(t, "b", slow)).granted() {                                // which takes the slow one before it
				t.Fatal("the slow one does not pass")
			}
			celldtest.Pass(10*time.Second + 50*time.Millisecond)
			w.leave(nil)
			s.Delete([]byte("b"), clock())
		}
		celldtest.Pass(10 * time.Second)
		if n := answers[0].Load(); n < 51_900 {
			t.Errorf("%d calls in 52 s", n)
		}
	})
}
