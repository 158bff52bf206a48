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
				celldtest.Pass(50 * time.Millisecond)
				other := await(s, time.Minute, 1, memtest.Call(t, "k", shared))
				celldtest.Pass(50 * time.Millisecond)
				memtest.MustTake(t, s, 1, start+50e6+c.busyNS, memtest.Calls(t, "slow", slow)) // by a clock that is ahead
				celldtest.Pass(150 * time.Millisecond)
				if c.at250 != nil {
					c.at250(s, both)
				}
				celldtest.Pass(10 * time.Second)
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
