//go:build linux

package main

import (
	"strings"
	"testing"
)

const printed = "\r CL.THROTTLE key:__rand_int__ 15 30 60: rps=0.0 (overall: 400000.0) avg_msec=2.241 (overall: 2.241)\r      " +
	`====== CL.THROTTLE key:__rand_int__ 15 30 60 ======
  100000 requests completed in 0.17 seconds
  50 parallel clients

Latency by percentile distribution:
0.000% <= 0.143 milliseconds (cumulative count 48)
50.000% <= 1.215 milliseconds (cumulative count 50144)
99.805% <= 3.167 milliseconds (cumulative count 99808)
99.902% <= 3.231 milliseconds (cumulative count 99904)
100.000% <= 3.295 milliseconds (cumulative count 100000)

Cumulative distribution of latencies:
0.000% <= 0.103 milliseconds (cumulative count 0)
100.000% <= 4.103 milliseconds (cumulative count 100000)

Summary:
  throughput summary: 574712.69 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        1.297     0.136     1.215     1.967     2.671     3.295
`

func TestParseRedisBenchmark(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       driven
		bad        bool
	}{
		{"redis-benchmark 7.0", printed, driven{perSecond: 574712.69, p50: 1.215, p99: 2.671, p999: 3.231, max: 3.295}, false},
		{"few requests", strings.Replace(printed, "99.902%", "99.870%", 1),
			driven{perSecond: 574712.69, p50: 1.215, p99: 2.671, p999: 3.295, max: 3.295}, false},
		{"no distribution", strings.ReplaceAll(printed, "milliseconds", "ms"), driven{}, true},
		{"no summary", printed[:strings.Index(printed, "Summary")], driven{}, true},
		{"other columns", strings.Replace(printed, "p95", "p90", 1), driven{}, true},
		{"a refusal", "Could not connect to Redis at 127.0.0.1:1: Connection refused", driven{}, true},
	} {
		got, err := parseRedisBenchmark(test.text)
		if (err != nil) != test.bad || !test.bad && got != test.want {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}
