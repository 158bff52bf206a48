package engine

import (
	"fmt"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestLongScript runs scripts that take longer than --store-timeout, and longer than a key that is not there leaves a trace. One
// that changes a key that is there succeeds; one that makes a key is told once why it cannot.
func TestLongScript(t *testing.T) {
	t.Parallel()
	const long = 2500 * time.Millisecond
	srv := harness.Start(t, "--store", engines.StartEngine(t).URL, "--store-timeout", "1s")
	c := harness.Dial(t, srv.Addr)
	run := func(rounds int, key string) string {
		loop := fmt.Sprintf("local x = 0 for i = 1, %d do x = x + i end ", rounds)
		return c.Do("EVAL", loop+"return redis.call('SET', KEYS[1], '4000000000000000001')", "1", key)
	}
	celldtest.Eventually(t, "a key is there", func() bool { return c.Do("SET", "there", "4000000000000000000") == "+OK\r\n" })
	for rounds := 1 << 22; ; rounds *= 2 {
		start := time.Now()
		if got := run(rounds, "there"); got != "+OK\r\n" {
			t.Fatalf("a key that is there: %q after %v", got, time.Since(start))
		}
		if time.Since(start) < long {
			continue
		}
		got := run(rounds, "absent")
		if got != "-STOREDOWN the command took so long that others may have changed its keys\r\n" {
			t.Errorf("a key that is not there: %q", got)
		}
		break
	}
	if got := c.Do("EXISTS", "absent"); got != ":0\r\n" {
		t.Errorf("EXISTS: %q", got)
	}
}
