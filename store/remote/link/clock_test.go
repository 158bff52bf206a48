package link

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
)

// The bounds hold the engine's time, whatever answers tell and however long they take, and are no wider than the last answer's.
func TestClockBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		start, c := time.Now(), &Clock{}
		engine := func() int64 { // it runs 900 ppm faster
			d := time.Since(start)
			return 1_800_000_000_000_000_000 + int64(d) + int64(d)*9/10_000
		}
		kept := 0
		for range 2000 {
			celldtest.Pass(time.Duration(rnd.IntN(1 + int(10*time.Millisecond)<<rnd.IntN(8))))
			sent := time.Now()
			celldtest.Pass(time.Duration(rnd.IntN(int(20 * time.Millisecond))))
			told := engine()
			celldtest.Pass(time.Duration(rnd.IntN(int(20 * time.Millisecond))))
			c.Observe(told, sent, time.Now())
			if c.sent != sent {
				kept++
			}
			if wide := time.Since(sent) + time.Duration(drift(time.Since(sent))); c.Span() > wide {
				t.Fatalf("known to %v, and the last answer took %v", c.Span(), wide)
			}
			celldtest.Pass(time.Duration(rnd.IntN(int(100 * time.Millisecond))))
			lower, ok := c.Lower()
			upper, ok2 := c.Upper()
			if is := engine(); !ok || !ok2 || is < lower || is > upper || upper-lower != int64(c.Span()) {
				t.Fatalf("it is %d: %d to %d (%v, %v), a span of %v", is, lower, upper, ok, ok2, c.Span())
			}
		}
		if kept < 500 {
			t.Errorf("a better answer was kept %d times", kept)
		}
	})
}

// A clock that is set is known with the next answer that shows it, and after half a second with any.
func TestClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(c *Clock, by, took time.Duration) {
			sent := time.Now()
			celldtest.Pass(took)
			c.Observe(time.Now().Add(by).UnixNano(), sent, time.Now())
		}
		for _, by := range []time.Duration{-time.Hour, -30 * time.Millisecond, 30 * time.Millisecond, time.Hour} {
			c := &Clock{}
			answer(c, 0, time.Millisecond)
			answer(c, by, 10*time.Millisecond)
			if lower, _ := c.Lower(); lower < time.Now().Add(by-11*time.Millisecond).UnixNano() || lower > time.Now().Add(by).UnixNano() {
				t.Errorf("set by %v, and known as %v", by, time.Duration(lower-time.Now().UnixNano()))
			}
		}
		c := &Clock{}
		answer(c, 0, time.Millisecond)
		answer(c, 5*time.Millisecond, 10*time.Millisecond) // it does not show
		celldtest.Pass(fresh / 2)
		answer(c, 5*time.Millisecond, 10*time.Millisecond)
		if c.Span() < 10*time.Millisecond {
			t.Errorf("what was known then is kept: %v", c.Span())
		}
	})
}

// Where the time is known badly, one request in a while is to tell it.
func TestWhoAsksForTheTime(t *testing.T) {
	c, now := &Clock{}, time.Now()
	for i, want := range []bool{true, false, false, true, false} {
		if is := c.Asks(now.Add(time.Duration(i) * (askAgain + 2) / 3)); is != want {
			t.Errorf("request %d: %v", i, is)
		}
	}
}
