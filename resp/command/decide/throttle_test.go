package decide

import (
	"testing"

	"celld/resp/command/argument"
)

// A wait below a millisecond rounds to 0 in redis-cell, at which callers spin.
func TestLimitedNeverSaysRetryAtOnce(t *testing.T) {
	c := newWorld(t)
	c.want("CL.THROTTLE k 0 5000 1", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:0\r\n")
	c.want("CL.THROTTLE k 0 5000 1", "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:0\r\n")
}

func TestThrottleErrors(t *testing.T) {
	c := newWorld(t)
	for line, want := range map[string]string{
		"CL.THROTTLE k 1 1":                         errThrottleUsage,
		"CL.THROTTLE k a b c d":                     ErrThrottleParse + "a",
		"CL.THROTTLE k 1 0 1":                       errThrottleZero,
		"CL.THROTTLE k -2 1 1":                      "Cell error: Store error: Out of range: max_burst -2",
		"CL.THROTTLE k 1 -1 1":                      "Cell error: Store error: Out of range: count -1",
		"CL.THROTTLE k 1 1 -1":                      "Cell error: Store error: Out of range: period -1",
		"CL.THROTTLE k 5 1 1 18446744074":           "Cell error: Store error: Out of range: quantity 18446744074",
		"CL.THROTTLE k 1 1 60 18446744073709551616": ErrThrottleParse + "18446744073709551616",
	} {
		c.want(line, "-"+want+"\r\n")
	}
	if n := c.Store.Len(c.NowNS); n != 0 {
		t.Errorf("%d keys", n)
	}
	if got, want := c.do("CL.THROTTLE", "k", "1", "2\r\n+OK", "3"), "-"+ErrThrottleParse+"2  +OK\r\n"; got != want {
		t.Errorf("line breaks: got %q, want %q", got, want)
	}
	if got, want := c.do("CL.THROTTLE", "k", "1", "2\n", "3"), "-"+ErrThrottleParse+"2\r\n"; got != want {
		t.Errorf("line break at the end: got %q, want %q", got, want)
	}
	if got, want := c.do("CL.THROTTLE", "k", "1", "2\x003", "3"), "-"+ErrThrottleParse+"2\r\n"; got != want {
		t.Errorf("NUL: got %q, want %q", got, want)
	}
}

// The reply to CL.THROTTLE, with a limit in numbers and by a policy.
func TestThrottle(t *testing.T) {
	w := newWorld(t)
	w.set("p", "2/1m")
	w.want("CL.RULE ADD DENY bad EX 90", ":1\r\n")
	w.want("CL.RULE ADD ALLOW good", ":1\r\n")
	for _, pair := range [][2]string{
		{"CL.THROTTLE k 1 1 60", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n"},
		{"CL.THROTTLE k 1 1 60 2", "*5\r\n:1\r\n:2\r\n:1\r\n:60\r\n:60\r\n"},
		{"CL.THROTTLE k 1 1 60 3", "*5\r\n:1\r\n:2\r\n:1\r\n:-1\r\n:60\r\n"},
		{"CL.THROTTLE k 1 1 60 +0", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n"},
		{"CL.THROTTLE bad 1 1 60", "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:90\r\n"},
		{"CL.THROTTLE good 1 1 60", "*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"},
		{"CL.THROTTLE none -1 1 60", "*5\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n"},
		{"CL.THROTTLE q @p", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:30\r\n"},
		{"CL.THROTTLE q @p 2", "*5\r\n:1\r\n:2\r\n:1\r\n:30\r\n:30\r\n"},
		{"CL.THROTTLE q @p 0", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:30\r\n"},
		{"CL.THROTTLE q @p -1", "*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"},
		{"CL.THROTTLE bad @p", "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:90\r\n"},
		{"CL.THROTTLE q @p 9007199254740991", "*5\r\n:1\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"},
		{"CL.THROTTLE q @p -9007199254740991", "*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"},
		{"CL.THROTTLE q @p 9007199254740992", fails(errThrottleRange, "quantity", 9007199254740992)},
		{"CL.THROTTLE q @p -9007199254740992", fails(errThrottleRange, "quantity", -9007199254740992)},
		{"CL.THROTTLE q @p x", fails(ErrThrottleParse + "x")},
		{"CL.THROTTLE q @none", fails(argument.ErrNoPolicy, "none")},
		{"CL.THROTTLE q @p 1 1", fails(ErrThrottleParse + "@p")},
		{"CL.THROTTLE q 1", fails(errThrottleUsage)},
		{"CL.THROTTLE q", fails(errThrottleUsage)},
		{"CL.THROTTLE", fails(errThrottleUsage)},
		{"CL.THROTTLE q 1 1 60 1 1", fails(errThrottleUsage)},
	} {
		w.want(pair[0], pair[1])
	}
}

// Seconds are rounded as redis-cell does: up from a millisecond on.
func TestWholeSeconds(t *testing.T) {
	for ns, want := range map[uint64]int64{0: 0, 1: 0, 999_999: 0, 1_000_000: 1, 1e9: 1, 1e9 + 999_999: 1, 1e9 + 1_000_000: 2} {
		if got := wholeSeconds(ns); got != want {
			t.Errorf("%d ns: %d, want %d", ns, got, want)
		}
	}
}
