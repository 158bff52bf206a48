//go:build linux

package main

import "testing"

func TestParseCommandStats(t *testing.T) {
	const info = "# Commandstats\r\n" +
		"cmdstat_config|get:calls=4,usec=19,usec_per_call=4.75,rejected_calls=0,failed_calls=1\r\n" +
		"cmdstat_cl.throttle:calls=120000,usec=136266,usec_per_call=1.14,rejected_calls=2,failed_calls=3\r\n"
	for _, test := range []struct {
		command string
		want    counts
	}{
		{"CL.THROTTLE", counts{commands: 120000, failed: 5}},
		{"PING", counts{}},
	} {
		if got, err := parseCommandStats(info, test.command); got != test.want || err != nil {
			t.Errorf("%s: %+v, %v", test.command, got, err)
		}
	}
	if _, err := parseCommandStats("cmdstat_ping:calls=many\r\n", "PING"); err == nil {
		t.Error("calls=many has no error")
	}
}

func TestParseMetrics(t *testing.T) {
	const text = "# TYPE throttlecrab_requests_by_transport counter\n" +
		"throttlecrab_requests_by_transport{transport=\"http\"} 1\n" +
		"throttlecrab_requests_by_transport{transport=\"redis\"} 42\n\n" +
		"throttlecrab_requests_errors 3\n"
	if got, err := parseMetrics(text); got != (counts{commands: 42, failed: 3}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseMetrics("not found"); err == nil {
		t.Error("a page without counters has no error")
	}
}

func TestParseCount(t *testing.T) {
	const info = "# Stats\r\nexpired_keys:42\r\nevicted_keys:many\r\n"
	if got, err := parseCount(info, "expired_keys"); got != 42 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, name := range []string{"evicted_keys", "keys"} {
		if _, err := parseCount(info, name); err == nil {
			t.Errorf("%s has no error", name)
		}
	}
}
