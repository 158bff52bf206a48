//go:build all

package clients

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestRedisBenchmark runs redis-benchmark, which asks for CONFIG first and stops at the first error.
func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	celldtest.Need(t, "redis-benchmark")
	srv := harness.Start(t)
	host, port := harness.HostPort(srv.Addr)
	for _, args := range [][]string{
		{"-n", "100000", "-P", "16", "-r", "1000", "CL.THROTTLE", "key:__rand_int__", "15", "1", "86400"},
		{"-n", "20000", "-t", "ping"},
		{"-n", "20000", "-t", "ping", "-3"},
		{"-n", "2000", "-c", "1", "-t", "ping_mbulk"},
		{"-n", "20000", "--threads", "2", "-P", "4", "CL.THROTTLE", "one", "15", "1", "86400"},
	} {
		out := harness.Tool(t, "redis-benchmark", append([]string{"-h", host, "-p", port, "-q"}, args...)...)
		if !strings.Contains(out, "requests per second") || strings.Contains(strings.ToLower(out), "err") || strings.Contains(out, "WARN") {
			t.Errorf("redis-benchmark %q: %s", args, out)
		}
	}
	c := harness.Dial(t, srv.Addr)
	if n := celldtest.IntReply(c.Do("DBSIZE")); n < 900 || n > 1001 {
		t.Errorf("%d keys, of about 1001", n)
	}
	if errs := c.Do("INFO", "stats"); !strings.Contains(errs, "total_error_replies:0\r\n") {
		t.Errorf("error replies: %s", errs)
	}
}
