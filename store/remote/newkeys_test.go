package remote

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
)

// A new key is decided for an instant that the engine's time has reached when the caller has its answer, and held back until then. A script
// decides where that would take too long, where the time is to be asked for, and where the answer came too late for a trace to be left.
func TestWhenANewKeyIsAnswered(t *testing.T) {
	for i, c := range []struct {
		span, takes time.Duration // to which the engine's time is known; of the answer
		asked       bool          // the time was asked for just now
		tries       bool
		again       bool
		answered    time.Duration
	}{
		{0, 0, false, true, false, 0},
		{0, store.CommitWithin, false, true, false, store.CommitWithin},
		{0, store.CommitWithin + 1, false, true, true, store.CommitWithin + 1},
		{nearby / 2, 0, false, true, false, 0}, // which any answer takes
		{nearby/2 + 1, 0, true, true, false, nearby/2 + 1},
		{nearby/2 + 1, 0, false, false, false, 0},
		{mostEarly, 0, true, true, false, mostEarly},
		{mostEarly, mostEarly - 1, true, true, false, mostEarly},
		{mostEarly, mostEarly + 5, true, true, false, mostEarly + 5},
		{mostEarly + 1, 0, true, false, false, 0},
	} {
		inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
			e.AnswersBy(func(command string) string {
				if strings.HasPrefix(command, "SET ") {
					time.Sleep(c.takes)
					return "_\r\n"
				}
				return celldtest.ArrayOf("_\r\n", celldtest.IntOf(time.Now().Unix()), celldtest.IntOf(0), celldtest.IntOf(0))
			})
			celldtest.Pass(time.Minute)
			now := time.Now()
			clock := s.link.Clock("k")
			// the clocks drift, too
			for sent := now.Add(-c.span); sent.Equal(now.Add(-c.span)) || clock.Span() > c.span; sent = sent.Add(1) {
				clock.Forget()
				clock.Observe(now.UnixNano(), sent, now)
			}
			if c.asked && !clock.Asks(now) {
				t.Fatal("it was asked before")
			}
			reqs := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
			s.throttleNow(reqs, store.Access{NowNS: now.UnixNano()})
			took := time.Since(now)
			if (s.stats.SetNew.Load() == 1) != c.tries || (s.stats.Scripts.Load() == 1) != (c.again || !c.tries) || reqs[0].Err != nil {
				t.Errorf("%d: it is tried %d times, and by scripts %d times, %v", i, s.stats.SetNew.Load(),
					s.stats.Scripts.Load(), reqs[0].Err)
			}
			if d := reqs[0].Decision; took != c.answered || d.Limited || d.Remaining != 9 || d.ResetAfterNS != 1e9 {
				t.Errorf("%d: %+v after %v", i, d, took)
			}
		})
	}
}

// A Take on a new key takes one round trip, whatever its limits are, and one on a key that another instance has taken from takes two, but
// of one window one, too.
func TestNewKeysTakeOneTrip(t *testing.T) {
	stores := testStores(t, 2)
	for i, limits := range [][]string{
		{"5/1h,algo=window"}, {"5/1h,algo=slide"}, {"5/1h,algo=log"}, {"5/1h,algo=window", "7/1h"}, {"5/1h,algo=conc"},
	} {
		for _, limit := range []string{"5/1h,algo=window", "5/1h,algo=slide"} { // so that it has both scripts
			stores[0].takes(t, 1, "knows the time", limit)
			stores[1].takes(t, 1, "knows the time", limit)
		}
		key := fmt.Sprint("k", i)
		for n, want := range []int64{1, int64(min(i+1, 2))} {
			before := stores[n].stats.Requests.Load()
			r := stores[n].takes(t, 1, key, limits...)
			asked, d := stores[n].stats.Requests.Load()-before, r.Calls[0].Decision
			if asked != want || r.Taken.Limited || d.Remaining != int64(4-n) {
				t.Errorf("%s: instance %d: %d requests, want %d: %+v", limits, n, asked, want, d)
			}
		}
	}
}
