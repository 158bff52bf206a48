package memory_test

import (
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// RESERVE takes at once and tells how long to wait.
func TestReserve(t *testing.T) {
	reserve := func(s *memory.Store, most time.Duration, cost int64, calls ...store.Call) *waiter {
		return ask(s, store.Reserve, most, cost, calls...)
	}
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const a, b = "10/1s,burst=1", "5/1s,burst=1"
		for i, want := range []uint64{0, 1e8, 2e8, 3e8} {
			if w := reserve(s, time.Second, 1, memtest.Call(t, "k", a)); !w.granted() || w.reqs[0].Terms.WaitNS != want ||
				w.taken().Granted != 1 || w.taken().RetryAfterNS != cell.Never {
				t.Errorf("%d: %+v, %+v", i, w.taken(), w.reqs[0].Terms)
			}
		}
		if w := reserve(s, 399*time.Millisecond, 1, memtest.Call(t, "k", a)); !w.denied() || w.reqs[0].Terms.WaitNS != 0 ||
			w.taken().RetryAfterNS != 4e8 || w.taken().Granted != 0 {
			t.Errorf("too long: %+v", w.taken())
		}
		if w := reserve(s, time.Hour, 1, memtest.Call(t, "k", a), memtest.Call(t, "l", "5/1s,algo=log")); w.err() != store.ErrNotBookable {
			t.Error(w.err())
		}
		// The wait is the longest, and each state takes all that is asked of it.
		plainly(s, 1, memtest.Call(t, "m", b))
		if w := reserve(s, time.Second, 1, memtest.Call(t, "k", a), memtest.Call(t, "m", b), memtest.Call(t, "n", b)); !w.granted() ||
			w.reqs[0].Terms.WaitNS != 4e8 {
			t.Errorf("three: %+v, %+v", w.taken(), w.reqs[0].Terms)
		}
		for key, retry := range map[string]uint64{"m": 4e8, "n": 2e8} {
			if w := plainly(s, 1, memtest.Call(t, key, b)); w.taken().RetryAfterNS != retry {
				t.Errorf("%s: %+v", key, w.taken())
			}
		}
		const twice = "10/1s,burst=2"
		plainly(s, 2, memtest.Call(t, "d", twice))
		if w := reserve(s, time.Second, 1, memtest.Call(t, "d", twice), memtest.Call(t, "d", twice)); !w.granted() ||
			w.reqs[0].Terms.WaitNS != 2e8 || plainly(s, 1, memtest.Call(t, "d", twice)).taken().RetryAfterNS != 3e8 {
			t.Errorf("twice: %+v, %+v", w.taken(), w.reqs[0].Terms)
		}
		if w := plainly(s, 1, memtest.Call(t, "k", a)); w.taken().RetryAfterNS != 5e8 {
			t.Errorf("k: %+v", w.taken())
		}
	})
	// Behind those who wait it overtakes nobody, and is overtaken by nobody.
	inBubble(t, func(t *testing.T, s *memory.Store) {
		start := clock()
		c := func() store.Call { return memtest.Call(t, "k", "10/1s,burst=1") }
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
		celldtest.Pass(time.Second)
		if first.at(start) != 100*time.Millisecond || last.at(start) != 300*time.Millisecond {
			t.Errorf("they pass after %v and %v", first.at(start), last.at(start))
		}
	})
}

// Each limit of a booked call tells what is left once all of it is taken. What a shadow limit would deny it still says.
func TestWhatABookedCallIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		const twice, shadow = "10/1s,burst=2", "1/1h,shadow"
		memtest.MustTake(t, s, 1, clock(), memtest.Calls(t, "s", shadow))
		memtest.MustTake(t, s, 2, clock(), memtest.Calls(t, "k", twice))
		w := ask(s, store.Reserve, time.Second, 1, memtest.Calls(t, "k", twice, "k", twice, "s", shadow)...)
		if got := w.reqs[0].Terms.WaitNS; !w.granted() || got != 2e8 {
			t.Fatalf("%+v, %d", w.taken(), got)
		}
		for i := range 2 {
			if d := w.reqs[0].Calls[i].Decision; d.Limited || d.RetryAfterNS != cell.Never {
				t.Errorf("%d: %+v", i, d)
			}
		}
		if d := w.reqs[0].Calls[1].Decision; d.ResetAfterNS != 4e8 || d.Remaining != 0 {
			t.Errorf("all that is taken: %+v", d)
		}
		if d := w.reqs[0].Calls[2].Decision; !d.Limited || d.RetryAfterNS != uint64(hour) {
			t.Errorf("a shadow limit: %+v", d)
		}
	})
}

// What is reserved behind a line for a window counts for those who come later.
func TestWhoStandsBehindAReservation(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memory.Store) {
		one := func() store.Call { return memtest.Call(t, "k", "1/1s,algo=window") }
		plainly(s, 1, one())
		for i := range uint64(4) {
			if w := plainly(s, 1, one()); w.taken().RetryAfterNS != (i+1)*1e9 {
				t.Errorf("behind %d: %+v", i, w.taken())
			}
			if i%2 == 0 {
				await(s, time.Minute, 1, one())
			} else if w := ask(s, store.Reserve, time.Minute, 1, one()); w.reqs[0].Terms.WaitNS != (i+1)*1e9 {
				t.Errorf("reserved behind %d: %+v", i, w.reqs[0].Terms)
			}
		}
		celldtest.Pass(time.Minute)
	})
}
