package clock

import (
	"testing"
	"testing/synctest"
	"time"
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
			if wantNS := start.Add(elapsed).UnixNano(); !ok || nowNS != wantNS || c.NowNS() != wantNS || wallNS != time.Now().Add(wall).UnixNano() {
				t.Errorf("the wall clock says %d, the clock %d and %d after %v, want %d", wallNS, nowNS, c.NowNS(), elapsed, wantNS)
			}
		}
		want(0)
		time.Sleep(time.Second)
		want(time.Second)
		wall = -time.Hour
		want(time.Second)
		suspended, wall = time.Hour, 0
		want(time.Hour + time.Second)
		time.Sleep(time.Second)
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
		if by := wallNS - nowNS; by < -100e6 || by > 100e6 {
			t.Errorf("the wall clock is %d ns ahead of a new clock", by)
		}
		if now := c.NowNS(); nowNS < last || now < nowNS {
			t.Errorf("%d, %d, %d: goes back", last, nowNS, now)
		}
		return
	}
}
