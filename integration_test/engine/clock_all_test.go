//go:build all

package engine

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// clockAhead is the environment of an engine whose clock is so much ahead of this machine's.
func clockAhead(t *testing.T, seconds int) []string {
	t.Helper()
	library := filepath.Join(t.TempDir(), "clock.so")
	harness.Tool(t, "gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c", "-ldl")
	return []string{"LD_PRELOAD=" + library, "SECONDS_AHEAD=" + strconv.Itoa(seconds)}
}

// TestOtherClock uses an engine whose clock is an hour ahead of celld's, and one whose clock is an hour behind: limits go by the engine's.
func TestOtherClock(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{3600, -3600} {
		t.Run(strconv.Itoa(seconds), func(t *testing.T) {
			f := engines.Redis(t).With(clockAhead(t, seconds)...).Alone(t)
			servers := shared(t, f.URL, 2)
			c := harness.Dial(t, servers[0].Addr)
			c.Play(
				harness.Step{"CL.TAKE k 1/100ms,burst=1", "0 1 0 -1 100 1 0"},
				harness.Step{"CL.TAKE k 1/100ms,burst=1 WAIT 10000", "0 1 0 -1 100 1 0"},
				harness.Step{"CL.THROTTLE other 0 1 60", "0 1 0 -1 60"},
				harness.Step{"CL.TAKE window 5/1h,algo=window", "0 5 4 -1 3600000 1 0"},
			)
			end := time.UnixMilli(celldtest.IntReply(c.Do("PEXPIRETIME", "window")))
			if off := time.Until(end) - time.Hour - time.Duration(seconds)*time.Second; off.Abs() > time.Minute {
				t.Errorf("the key ends at %v: %v beside the engine's clock", end, off)
			}
			l := (&load{clients: 4}).start(t, servers, kinds...)
			time.Sleep(time.Second) // what the rates are counted in
			l.check(0)
		})
	}
}

// TestMasterOfOtherClock kills a master. Sentinels replace it by one whose clock is an hour ahead of the old one's, or an hour
// behind. After the first, all of a limit has flowed back; the second denies for an hour more.
func TestMasterOfOtherClock(t *testing.T) {
	t.Parallel()
	const hour = 3_600_000
	for _, seconds := range []int{3600, -3600} {
		t.Run(strconv.Itoa(seconds), func(t *testing.T) {
			t.Parallel()
			f := engines.Redis(t).Sentinel(t)
			for _, replica := range f.Nodes[1:] {
				replica.Kill()
				replica.With(clockAhead(t, seconds)...)
				replica.Restart()
			}
			f.Settled()
			c := harness.Dial(t, harness.Start(t, "--store", f.URL).Addr)
			for _, limit := range []string{"5/1m,burst=5", "5/1m,algo=window", "5/1m,algo=log"} {
				if got := c.Take(limit, limit, "COST", "5"); got.Limited == 1 || got.Remaining != 0 {
					t.Errorf("%s: %+v", limit, got)
				}
			}
			last := f.MasterOf("").Dial() // what its replicas do not have yet would be forgotten
			last.Do("SET", "last", "1")
			if got := last.Do("WAIT", "2", "60000"); got != ":2\r\n" {
				t.Fatalf("%q replicas have all", got)
			}
			f.MasterOf("").Kill()
			celldtest.Eventually(t, "celld has the new master", func() bool { return !strings.HasPrefix(c.Do("GET", "none"), "-") })
			for _, limit := range []string{"5/1m,burst=5", "5/1m,algo=window", "5/1m,algo=log"} {
				got := c.Take(limit, limit)
				switch {
				case seconds > 0 && (got.Limited == 1 || got.Remaining != 4):
					t.Errorf("%s, ahead: %+v", limit, got)
				case seconds < 0 && got.Limited == 0:
					t.Errorf("%s, behind: %+v", limit, got)
				case seconds < 0 && strings.Contains(limit, "burst") && (got.RetryMS < hour-60_000 || got.RetryMS > hour+60_000):
					t.Errorf("%s, behind: %+v", limit, got)
				}
			}
		})
	}
}
