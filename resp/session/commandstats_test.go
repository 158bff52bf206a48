package session

import (
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/spec"
)

// A fast command in a pipeline counts with the mean time of its batch, a slow one and one in EXEC with its own.
func TestLatencyStats(t *testing.T) {
	w := newWorld(t)
	for name, took := range map[string]int64{"fast": 3, "slow": 50} {
		row := &command.Row{Name: name, Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(took); s.call.OK() })}
		if name == "fast" {
			row.Flags = spec.Fast
		}
		w.Commands.Rows = append(w.Commands.Rows, row)
		w.Commands.Add(row)
	}
	c := w.connect()
	c.send("FAST\r\nPING\r\nPING\r\nSLOW\r\n") // 3 ms for three fast ones
	c.send("MULTI\r\nFAST\r\nEXEC\r\n")
	info := c.do("INFO", "latencystats")
	for _, line := range []string{
		"latency_percentiles_usec_fast:p50=1003.519,p99=3014.655,p99.9=3014.655\r\n", // 1 ms and 3 ms
		"latency_percentiles_usec_ping:p50=1003.519,p99=1003.519,p99.9=1003.519\r\n",
		"latency_percentiles_usec_slow:p50=50069.503,p99=50069.503,p99.9=50069.503\r\n",
		"latency_percentiles_usec_exec:p50=3014.655,p99=3014.655,p99.9=3014.655\r\n",
	} {
		if !strings.Contains(info, line) {
			t.Errorf("no line %q in %q", line, info)
		}
	}
	info = c.do("INFO", "commandstats")
	for _, line := range []string{
		"cmdstat_fast:calls=2,usec=4000,usec_per_call=2000.00,", "cmdstat_ping:calls=2,usec=2000,usec_per_call=1000.00,",
		"cmdstat_slow:calls=1,usec=50000,usec_per_call=50000.00,", "cmdstat_exec:calls=1,usec=3000,usec_per_call=3000.00,",
	} {
		if !strings.Contains(info, line) {
			t.Errorf("no line %q in %q", line, info)
		}
	}
	c.want("LATENCY HISTOGRAM ping slow nosuch",
		"*4\r\n$4\r\nping\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*2\r\n:1056\r\n:2\r\n"+
			"$4\r\nslow\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:67633\r\n:1\r\n")
	c.do("CONFIG", "RESETSTAT")
	if info := c.do("INFO", "latencystats"); strings.Contains(info, "fast") || strings.Contains(info, "ping") {
		t.Errorf("after CONFIG RESETSTAT: %q", info)
	}
}
