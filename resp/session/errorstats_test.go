package session

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/session/sessiontest"
)

// INFO errorstats and total_error_replies count the same replies, those of batches among them.
func TestErrorStats(t *testing.T) {
	w := newWorld(t, "maxmemory-policy", "noeviction", "max-keys", "1")
	c := w.connect()
	c.do("CL.TAKE", "k", "5/1h")
	wrongType := sessiontest.Frame("CL.THROTTLE", "k", "15", "30", "60")
	c.send(strings.Repeat(wrongType, 10) + strings.Repeat(sessiontest.Frame("CL.TAKE", "full", "5/1h"), 10) +
		sessiontest.Frame("CL.THROTTLE", "k", "x", "y", "z") + "NOSUCH\r\n")
	info := c.do("INFO", "errorstats")
	want := "# Errorstats\r\nerrorstat_Cell:count=1\r\nerrorstat_ERR:count=1\r\nerrorstat_OOM:count=10\r\nerrorstat_WRONGTYPE:count=10\r\n"
	if !strings.Contains(info, want) {
		t.Errorf("INFO errorstats: %q, want %q", info, want)
	}
	if info := c.do("INFO", "stats"); !strings.Contains(info, "total_error_replies:22\r\n") {
		t.Errorf("INFO stats: %q", info)
	}
}

// An error of a command that a script passes on has been counted; what it makes an error itself has not. As redis-server 7.0 does.
func TestErrorStatsOfScripts(t *testing.T) {
	const failing = "redis.pcall('EXPIRE', 'k', 'x')"
	for script, counted := range map[string]int{
		"return redis.call('EXPIRE', 'k', 'x')":                               1,
		"return " + failing:                                                   1,
		"redis.call('TTL')":                                                   1,
		"local e = " + failing + " error(e)":                                  1,
		"local e = " + failing + " e.err = 'NEW one' return e":                1,
		"local e = " + failing + " return {err=e.err}":                        2,
		"local ok, e = pcall(redis.call, 'EXPIRE', 'k', 'x') error(e)":        2,
		"local e = " + failing + " return 1":                                  1,
		"return {" + failing + "}":                                            1,
		"return {err='MY x'}":                                                 1,
		"error('x')":                                                          1,
		"redis.call()":                                                        1,
		"return (":                                                            1,
		"local e = " + failing + " return redis.call('EXPIRE', 'k', 'y')":     2,
		"local ok, e = xpcall(redis.call, function(e) return e end) return e": 1,
		"local e = " + failing + " error({err=e.err, ignore_error_stats_update=1})": 1,
		"local e = " + failing + " for i = 1, 1e4 do local n = #e.err end return e": 1,
	} {
		w := newWorld(t)
		c := w.connect()
		c.send(sessiontest.Frame("EVAL", script, "0") + sessiontest.Frame("EXPIRE", "k", "y"))
		if info := c.do("INFO", "stats"); !strings.Contains(info, fmt.Sprintf("total_error_replies:%d\r\n", counted+1)) {
			t.Errorf("%s: %q, want %d", script, info, counted)
		}
		info := c.do("INFO", "errorstats")
		if counted == 1 && !strings.Contains(script, "MY") && !strings.Contains(info, "errorstat_ERR:count=2\r\n") {
			t.Errorf("%s: %q", script, info)
		}
	}
}
