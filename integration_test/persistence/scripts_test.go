package persistence

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestScriptsOutliveRestart starts celld again after scripts have written, also where one has failed halfway.
func TestScriptsOutliveRestart(t *testing.T) {
	t.Parallel()
	const throttle = `return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])`
	for _, flags := range [][]string{{"--appendonly", "yes", "--appendfsync", "always"}, {"--appendonly", "yes"}, {"--save", "3600 1"}} {
		dir := t.TempDir()
		srv := harness.StartOn(t, dir, flags...)
		c := harness.Dial(t, srv.Addr)
		for _, call := range [][]string{
			{"EVAL", throttle, "1", "throttled", "15", "30", "6000"},
			{"EVAL", "for i = 1, 100 do redis.call('CL.THROTTLE', 'many:' .. i, 15, 30, 6000 + i) end", "0"},
			{"EVAL", "redis.call('SET', KEYS[1], '9000000000000000000', 'PXAT', '9000000000000') redis.call('SET', KEYS[2], '9000000000000000001') redis.call('DEL', KEYS[2])", "2", "set", "deleted"},
			{"EVAL", "redis.call('SET', KEYS[1], '9000000000000000002') redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('PEXPIRE', KEYS[2], 90000000)", "2", "old", "new"},
		} {
			if got := c.Do(call...); strings.HasPrefix(got, "-") {
				t.Fatalf("%q: %q", call, got)
			}
		}
		if got := c.Do("EVAL", "redis.call('SET', KEYS[1], '9000000000000000003') error('halfway')", "1",
			"halfway"); !strings.HasPrefix(got, "-ERR user_script:1: halfway") {
			t.Fatalf("a script that fails: %q", got)
		}
		c.Do("CL.TAKE", "limits", "5/1h,algo=log")
		if got := c.Do("EVAL", "return redis.call('CL.TAKE', KEYS[1], '5/1h,algo=log')[3]", "1", "limits"); got != ":3\r\n" {
			t.Fatalf("CL.TAKE in a script: %q", got)
		}
		c.Do("MULTI")
		c.Do("EVAL", throttle, "1", "in a transaction", "15", "30", "6000")
		c.Do("EXEC")
		want := statesOf(c)
		delete(want, "limits")
		if len(want) != 105 {
			t.Errorf("%q: %d keys", flags, len(want))
		}
		srv.Stop()

		c = harness.Dial(t, harness.StartOn(t, dir, flags...).Addr)
		loaded(c)
		if got := c.Do("CL.TAKE", "limits", "5/1h,algo=log", "PEEK"); !strings.HasPrefix(got, "*7\r\n:0\r\n:5\r\n:3\r\n") {
			t.Errorf("%q: CL.TAKE's key after a restart: %q", flags, got)
		}
		if got := c.Do("EVALSHA", celldtest.Digest(throttle), "1", "throttled", "15", "30",
			"6000"); got != "-NOSCRIPT No matching script. Please use EVAL.\r\n" {
			t.Errorf("%q: a script after a restart: %q", flags, got)
		}
		got := statesOf(c)
		delete(got, "limits")
		same(t, strings.Join(flags, " "), got, want)
	}
}
