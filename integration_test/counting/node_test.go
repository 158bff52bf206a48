//go:build all

package counting

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// modulesDir is where `make counting` installs what testdata/package.json names.
const modulesDir = "../../.cache/counting/node_modules"

// callersLimit is the limit of the key on which each script lets 200 callers in at once.
const callersLimit = 50

// scenario is what a script of testdata prints.
type scenario struct {
	Lines    []string // each call and what the library answered, times left out
	Faults   []string // times that were not what they should be, and windows that ended too early or too late
	Admitted int      // of the callers at once
}

// play runs a script with a library and one client on a server. All keys begin with the prefix.
func play(t *testing.T, library, script, client, addr, prefix string) (s scenario) {
	t.Helper()
	modules, err := filepath.Abs(modulesDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, library)); err != nil {
		celldtest.Missing(t, "not installed (make counting does it): %v", err)
	}
	for _, file := range []string{script, "scenario.js", "package.json"} { // so that go test's cache knows of them
		if _, err := os.Stat("testdata/" + file); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), celldtest.Need(t, "node"), script, addr, client, prefix)
	cmd.Dir = "testdata"
	cmd.Env = append(harness.CleanEnv(), "NODE_PATH="+modules)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s on %s: %v\n%s", script, addr, err, stderr.String())
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s on %s: %v: %s", script, addr, err, text)
	}
	return s
}

// TestNodeLibraries plays the same calls by each library on celld and on redis-server.
func TestNodeLibraries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ library, script, client string }{
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
				want := play(t, c.library, c.script, c.client, redis, attempt)
				got := play(t, c.library, c.script, c.client, celld, attempt)
				if got.Admitted != callersLimit || want.Admitted != callersLimit {
					t.Errorf("of 200 callers at once celld admitted %d, and redis-server %d; the limit is %d",
						got.Admitted, want.Admitted, callersLimit)
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
