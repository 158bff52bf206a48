package memory_test

import (
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// Calls of one Take that share a state pass together or not at all, also where each of them would deny the next. What they are denied
// costs nothing, and a part of what they ask for is a part for each.
func TestCallsThatShareAState(t *testing.T) {
	for _, c := range []struct {
		limit   string
		cost    int64
		upTo    bool
		granted int64
		left    int64 // as soon as no block holds
	}{
		{limit: "5/1m", cost: 2, granted: 2, left: 1},
		{limit: "5/1m", cost: 3, left: 5},
		{limit: "5/1m", cost: 10, upTo: true, granted: 2, left: 1},
		{limit: "5/1m,algo=log", cost: 2, granted: 2, left: 1},
		{limit: "5/1m,block=1s", cost: 2, granted: 2, left: 1},
		{limit: "5/1m,block=1s", cost: 6, left: 5},
		{limit: "20/1s,warmup=10s", cost: 1, granted: 1},
	} {
		s := memory.New(memory.Options{})
		list := memtest.Calls(t, "k", c.limit, "k", c.limit)
		taken, err := s.Take(list, store.TakeOptions{Cost: c.cost, UpTo: c.upTo}, memtest.At(t0))
		if err != nil || taken.Granted != c.granted || taken.Limited != (c.granted == 0) || list[1].Decision.Limited != taken.Limited {
			t.Errorf("%s, %d: %+v, %+v, %v", c.limit, c.cost, taken, list[1].Decision, err)
		}
		if got := left(t, s, "k", c.limit, t0+second); list[0].Limit.Cold == 0 && got != c.left {
			t.Errorf("%s, %d: %d are left, want %d", c.limit, c.cost, got, c.left)
		}
		memtest.MustAudit(t, s)
	}
}

// All limits of one key that a Take changes are one change of the key.
func TestATakeIsOneChangeOfAKey(t *testing.T) {
	s := memory.New(memory.Options{})
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "9/1h", "l", "9/1h"))
	for i, list := range [][]store.Call{
		memtest.Calls(t, "k", "9/1h", "k", "9/1m"), memtest.Calls(t, "k", "9/1h", "k", "9/1h"),
		memtest.Calls(t, "k", "9/1h", "l", "9/1h", "k", "9/1m"),
	} {
		before := s.Stats(t0).Changes
		memtest.MustTake(t, s, 1, t0, list)
		want := int64(1 + i/2) // the last changes two keys
		if got := s.Stats(t0).Changes - before; got != want {
			t.Errorf("%d: %d changes, want %d", i, got, want)
		}
	}
}

// What calls that share a state ask for counts for each of them: in the wait that they are told behind a line, and in the line.
func TestCallsThatShareALine(t *testing.T) {
	const bucket, window = "10/1s,burst=4", "2/1s,algo=window"
	inBubble(t, func(t *testing.T, s *memory.Store) {
		plainly(s, 4, memtest.Call(t, "k", bucket))
		first := await(s, time.Minute, 1, memtest.Call(t, "k", bucket))
		two := func() []store.Call { return memtest.Calls(t, "k", bucket, "k", bucket) }
		if w := plainly(s, 1, two()...); w.taken().RetryAfterNS != 3e8 || w.reqs[0].Calls[0].Decision.RetryAfterNS != 2e8 {
			t.Errorf("behind one: %+v", w.taken())
		}
		both := await(s, time.Minute, 1, two()...)
		if w := plainly(s, 1, memtest.Call(t, "k", bucket)); w.taken().RetryAfterNS != 4e8 {
			t.Errorf("behind three: %+v", w.taken())
		}
		start := clock()
		celldtest.Pass(time.Second)
		if first.at(start) != 100*time.Millisecond || both.at(start) != 300*time.Millisecond {
			t.Errorf("they pass after %v and %v", first.at(start), both.at(start))
		}
	})
	inBubble(t, func(t *testing.T, s *memory.Store) {
		plainly(s, 2, memtest.Call(t, "k", window))
		both := await(s, time.Minute, 1, memtest.Calls(t, "k", window, "k", window)...) // all of the next window
		if w := plainly(s, 1, memtest.Call(t, "k", window)); w.taken().RetryAfterNS != 2e9 {
			t.Errorf("behind a whole window: %+v", w.taken())
		}
		if celldtest.Pass(time.Second); !both.granted() {
			t.Errorf("%+v", both.taken())
		}
	})
}

// A shadow limit that would deny blocks its key as any other, though the call passes.
func TestAShadowLimitBlocks(t *testing.T) {
	s := memory.New(memory.Options{})
	for i, step := range []struct {
		ns      int64
		limited bool
	}{{0, false}, {0, true}, {2 * second, true}, {3*second - 1, true}, {3 * second, false}} {
		list := memtest.Calls(t, "k", "1/1s,shadow,block=3s", "l", "9/1s")
		taken := memtest.MustTake(t, s, 1, t0+step.ns, list)
		if taken.Limited || taken.Granted != 1 || list[0].Decision.Limited != step.limited {
			t.Errorf("%d: %+v, %+v", i, taken, list[0].Decision)
		}
	}
}

// A call that is denied at the instant at which a block ends begins another.
func TestABlockAtTheEndOfAnother(t *testing.T) {
	s := memory.New(memory.Options{})
	for i, step := range []struct{ ns, retry int64 }{
		{0, 0}, {0, 3 * second}, {2*second - 1, second + 1}, {2 * second, 2 * second}, {3 * second, second}, {4 * second, 0},
	} {
		list := memtest.Calls(t, "k", "1/3s,block=2s", "l", "9/1s")
		taken := memtest.MustTake(t, s, 1, t0+step.ns, list)
		if taken.Limited != (step.retry > 0) || taken.Limited && taken.RetryAfterNS != uint64(step.retry) {
			t.Errorf("%d: %+v", i, taken)
		}
	}
}

// A limit that becomes one of another kind takes as much room as that, whether it needs more or less.
func TestTheRoomOfAnotherKind(t *testing.T) {
	kinds := []string{"9/1h", "9/1h,algo=log", "9/1h,algo=slide,buckets=4", "9/1h", "9/1h,algo=log", "9/1h"}
	s, p := memory.New(memory.Options{}), store.Call{Key: []byte("k")}
	for i, kind := range kinds {
		if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, kind)}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		of := s.PolicyNamed("p")
		p.Limit, p.Policy = &of.Limits[0].Limit, of.Limits[0]
		memtest.MustTake(t, s, 1, t0, append(memtest.Calls(t, "other", "9/1s"), p))
		if d := memtest.MustTake(t, s, 0, t0, []store.Call{p}); d.Limited || i == 0 && s.Len(t0) != 2 {
			t.Errorf("%s: %+v", kind, d)
		}
		memtest.MustAudit(t, s)
	}
}

// A denied call leaves a limit as it is that has nothing left to carry over, from the very instant on.
func TestNothingIsCarriedOverFromWhatIsOver(t *testing.T) {
	for _, c := range []struct {
		ns      int64
		changes int64
	}{{second - 1, 1}, {second, 0}, {second + 1, 0}} {
		s := memory.New(memory.Options{})
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "1/1s", "k", "1/1h"))
		before := s.Stats(t0).Changes
		list := memtest.Calls(t, "k", "2/1s", "k", "1/1h")
		if taken := memtest.MustTake(t, s, 1, t0+c.ns, list); !taken.Limited || taken.RetryAfterNS == cell.Never {
			t.Fatalf("%+v", taken)
		}
		if got := s.Stats(t0).Changes - before; got != c.changes {
			t.Errorf("after %d ns: %d changes, want %d", c.ns, got, c.changes)
		}
	}
}
