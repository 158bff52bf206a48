package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
)

func TestAClockGoesOnWhileTheMachineIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bootedNS = 5e9
		wall, suspended := time.Duration(0), time.Duration(0)
		start := time.Now()
		c := newClock(
			func() int64 { return time.Now().Add(wall).UnixNano() },
			func() (int64, bool) { return bootedNS + int64(time.Since(start)+suspended), true },
		)
		want := func(elapsed time.Duration) {
			t.Helper()
			wallNS, nowNS, ok := c.Read()
			wantNS := start.Add(elapsed).UnixNano()
			if !ok || nowNS != wantNS || c.NowNS() != wantNS || wallNS != time.Now().Add(wall).UnixNano() {
				t.Errorf("the wall clock says %d, the clock %d and %d after %v, want %d", wallNS, nowNS, c.NowNS(), elapsed, wantNS)
			}
		}
		want(0)
		celldtest.Pass(time.Second)
		want(time.Second)
		wall = -time.Hour
		want(time.Second)
		suspended, wall = time.Hour, 0
		want(time.Hour + time.Second)
		celldtest.Pass(time.Second)
		suspended += time.Minute
		want(time.Hour + time.Minute + 2*time.Second)
	})
}

// The clocks of this system are read as a Clock needs them.
func TestTheSystemsClocks(t *testing.T) {
	c := New()
	for !t.Failed() { // until it is not interrupted
		last := c.NowNS()
		wallNS, nowNS, ok := c.Read()
		if !ok {
			continue
		}
		if by := time.Now().UnixNano() - wallNS; by < 0 || by > 60e9 {
			t.Errorf("the wall clock was read %d ns ago", by)
		}
		if by := wallNS - nowNS; by < -100e6 || by > 100e6 {
			t.Errorf("the wall clock is %d ns ahead of a new clock", by)
		}
		if now := c.NowNS(); nowNS < last || now < nowNS {
			t.Errorf("%d, %d, %d: goes back", last, nowNS, now)
		}
		return
	}
}

// An interruption between the readings shows, and a short difference between the clocks is no suspension.
func TestReadingsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes, suspended time.Duration
		start := time.Now()
		c := newClock(
			func() int64 { return time.Now().UnixNano() },
			func() (int64, bool) { time.Sleep(takes); return int64(time.Since(start) + suspended), true },
		)
		for by, want := range map[time.Duration]bool{readWithinNS: true, readWithinNS + 1: false} {
			takes = by
			if _, _, ok := c.Read(); ok != want {
				t.Errorf("%v between the readings: %v", by, ok)
			}
		}
		takes = 0
		offset := func() int64 { return c.NowNS() - time.Now().UnixNano() }
		before := offset()
		for _, step := range []struct{ is, counts time.Duration }{
			{leastSuspendNS, 0}, {leastSuspendNS + 1, leastSuspendNS + 1}, {2*leastSuspendNS + 1, leastSuspendNS + 1},
			{2*leastSuspendNS + 2, 2*leastSuspendNS + 2},
		} {
			suspended = step.is
			if c.Read(); offset()-before != int64(step.counts) {
				t.Errorf("suspended for %v: the clock counts %d ns", step.is, offset()-before)
			}
		}
	})
}

// Where the system does not tell how long it was suspended, the clock goes on as the wall clock did at its start.
func TestWithoutBootTime(t *testing.T) {
	c := newClock(func() int64 { return 5e18 }, func() (int64, bool) { return 1e18, false })
	if _, nowNS, _ := c.Read(); nowNS < 5e18 || nowNS > 5e18+60e9 || c.suspended.Load() != 0 {
		t.Errorf("%d", nowNS)
	}
}
