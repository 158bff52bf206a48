package engine

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// clockAhead is an Engine whose clock is so much ahead of this machine's.
func clockAhead(t *testing.T, e harness.Engine, seconds int) harness.Engine {
	t.Helper()
	library := filepath.Join(t.TempDir(), "clock.so")
	harness.Tool(t, "gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c", "-ldl")
	return e.With("LD_PRELOAD="+library, "SECONDS_AHEAD="+strconv.Itoa(seconds))
}

// TestOtherClock has an engine whose clock is an hour ahead of celld's, and one whose is an hour behind: limits go by the engine's.
func TestOtherClock(t *testing.T) {
	for _, seconds := range []int{3600, -3600} {
		t.Run(strconv.Itoa(seconds), func(t *testing.T) {
			f := clockAhead(t, harness.Redis(t), seconds).Alone(t)
			servers := shared(t, f.URL, 2)
			c := harness.Dial(t, servers[0].Addr)
			c.Play(
				harness.Step{"CL.TAKE k 1/100ms,burst=1", "0 1 0 -1 100 1 0"},
				harness.Step{"CL.TAKE k 1/100ms,burst=1 WAIT 100", "0 1 0 -1 100 1 0"},
				harness.Step{"CL.THROTTLE other 0 1 60", "0 1 0 -1 60"},
				harness.Step{"CL.TAKE window 5/1h,algo=window", "0 5 4 -1 3600000 1 0"},
			)
			end := time.UnixMilli(harness.IntReply(c.Do("PEXPIRETIME", "window")))
			if off := time.Until(end) - time.Hour - time.Duration(seconds)*time.Second; off.Abs() > time.Minute {
				t.Errorf("the key ends at %v: %v beside the engine's clock", end, off)
			}
			l := (&load{clients: 4}).start(t, servers, kinds...)
			time.Sleep(time.Second) // what the rates are counted in
			l.check(0)
		})
	}
}
