//go:build all

package clients

import (
	"fmt"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestKumoMTA replays what KumoMTA sends for its shared throttles (crates/throttle and crates/mod-redis of its repository, redis-rs
// 0.32): the set-up of a connection, the question whether there is CL.THROTTLE, a PING before each use of a pooled
// connection, and calls whose key has the limit in it. redis-server with redis-cell decides the same.
func TestKumoMTA(t *testing.T) {
	t.Parallel()
	celld, redis := harness.Dial(t, harness.Start(t).Addr), harness.Dial(t, celldtest.StartRedis(t, "--loadmodule", harness.ModulePath(t)))
	defer celld.Close()
	defer redis.Close()
	for _, kind := range []string{"LIB-NAME redis-rs", "LIB-VER 0.32.7"} { // in Redis since 7.2
		if got := celld.Do(strings.Fields("CLIENT SETINFO " + kind)...); got != "+OK\r\n" {
			t.Errorf("CLIENT SETINFO %s: %q", kind, got)
		}
	}
	for _, c := range []*harness.Conn{celld, redis} {
		// else it sends a script
		if got := c.Do("COMMAND", "INFO", "CL.THROTTLE"); !strings.HasPrefix(got, "*1\r\n*10\r\n$11\r\ncl.throttle\r\n") {
			t.Errorf("COMMAND INFO CL.THROTTLE: %.200q", got)
		}
	}
	for _, spec := range []struct {
		limit, burst, period, quantity, calls int
	}{
		{100, 100, 3600, 1, 110}, // 100/hr, whose max_burst is the limit unless it is given
		{50, 1, 86400, 1, 4},     // 50/day,max_burst=1
		{1000, 1000, 3600, 100, 12},
		{2, 2, 86400, 3, 2},
		{5, 5, 3600, 0, 2},
	} {
		key := fmt.Sprintf("kumo.throttle.example.com:%d:%d:%d", spec.limit, spec.burst, spec.period)
		limited := false
		for range spec.calls {
			var replies [2][5]int64
			for i, c := range []*harness.Conn{celld, redis} {
				if got := c.Do("PING"); got != "+PONG\r\n" {
					t.Fatalf("PING: %q", got)
				}
				replies[i] = c.Throttle(key, fmt.Sprint(spec.burst), fmt.Sprint(spec.limit), fmt.Sprint(spec.period),
					fmt.Sprint(spec.quantity))
			}
			if got, want := replies[0], replies[1]; [3]int64(got[:3]) != [3]int64(want[:3]) || (got[3] > 0) != (want[3] > 0) {
				t.Errorf("%s by %d: %v, of redis-cell %v", key, spec.quantity, got, want)
			}
			limited = limited || replies[0][0] == 1
		}
		if limited != (spec.quantity > 0) {
			t.Errorf("%s by %d: limited %v after %d calls", key, spec.quantity, limited, spec.calls)
		}
	}
}
