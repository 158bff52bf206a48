//go:build all

package counting

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// scenario is what a script of testdata prints.
type scenario struct {
	Lines    []string // each call and what the library answered, times left out
	Faults   []string // times that were not what they should be, and windows that ended too early or too late
	Admitted int      // of the callers at once
}

// play runs a script with a module that `make counting` installs, and one client, on a server. All keys begin with the prefix.
func play(t *testing.T, module, script, client, addr, prefix string) (s scenario) {
	t.Helper()
	modules := harness.CachePath(t, "counting/node_modules")
	if _, err := os.Stat(filepath.Join(modules, module)); err != nil {
		celldtest.Missing(t, "not installed (make counting does it): %v", err)
	}
	text := harness.Script(t, []string{"NODE_PATH=" + modules}, celldtest.Need(t, "node"), script, addr, client, prefix)
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s on %s: %v: %s", script, addr, err, text)
	}
	return s
}

// TestNodeLibraries plays the same calls by each library on celld and on redis-server.
func TestNodeLibraries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ module, script, client string }{
		{"rate-limit-redis", "rate_limit_redis.js", "ioredis"},
		{"rate-limit-redis", "rate_limit_redis.js", "redis"},
		{"rate-limiter-flexible", "rate_limiter_flexible.js", "ioredis"},
		{"rate-limiter-flexible", "rate_limiter_flexible.js", "redis"},
		{"@nest-lab/throttler-storage-redis", "throttler_storage_redis.js", "ioredis"},
		{"@fastify/rate-limit", "fastify_rate_limit.js", "ioredis"},
	} {
		t.Run(strings.TrimSuffix(c.script, ".js")+" with "+c.client, func(t *testing.T) {
			t.Parallel()
			redis := celldtest.StartRedis(t)
			celld := harness.StartStress(t).Addr
			celldtest.Again(t, func(attempt string) string { // windows of 400 ms may end while a loaded machine stands still
				want := play(t, c.module, c.script, c.client, redis, attempt)
				got := play(t, c.module, c.script, c.client, celld, attempt)
				if got.Admitted != limit || want.Admitted != limit {
					t.Errorf("of %d callers at once celld admitted %d, and redis-server %d; the limit is %d",
						callers, got.Admitted, want.Admitted, limit)
				}
				return difference(got, want)
			})
		})
	}
}

// difference says what celld answered otherwise than redis-server, and which times were wrong.
func difference(got, want scenario) string {
	if !slices.Equal(got.Lines, want.Lines) {
		same := 0
		for same < min(len(got.Lines), len(want.Lines)) && got.Lines[same] == want.Lines[same] {
			same++
		}
		return fmt.Sprintf("after %d same lines\n       celld %q\nredis-server %q", same, got.Lines[same:], want.Lines[same:])
	}
	if len(got.Faults)+len(want.Faults) > 0 {
		return fmt.Sprintf("times\n       celld %q\nredis-server %q", got.Faults, want.Faults)
	}
	return ""
}
