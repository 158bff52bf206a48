package harness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Throttle calls CL.THROTTLE and returns its five integers.
func (c *Conn) Throttle(args ...string) [5]int64 {
	c.T.Helper()
	raw := c.Do(append([]string{"CL.THROTTLE"}, args...)...)
	ints, ok := FiveInts(raw)
	if !ok {
		c.T.Fatalf("CL.THROTTLE %q: %q", args, raw)
	}
	return ints
}

// FiveInts reads the reply of CL.THROTTLE: limited, limit, remaining, retry after, reset after.
func FiveInts(raw string) (ints [5]int64, ok bool) {
	lines := strings.Split(raw, "\r\n")
	if len(lines) != 7 || lines[0] != "*5" || lines[6] != "" {
		return ints, false
	}
	for i := range ints {
		n, err := strconv.ParseInt(strings.TrimPrefix(lines[i+1], ":"), 10, 64)
		if err != nil || lines[i+1][0] != ':' {
			return ints, false
		}
		ints[i] = n
	}
	return ints, true
}

// FiveReplies are raw replies of CL.THROTTLE, written as redis-cli shows them, in one line each.
func FiveReplies(replies ...string) []string {
	raw := slices.Clone(replies)
	for i, reply := range replies {
		raw[i] = "*5\r\n:" + strings.ReplaceAll(reply, " ", "\r\n:") + "\r\n"
	}
	return raw
}

// Taken is the reply to CL.TAKE.
type Taken struct{ Limited, Limit, Remaining, RetryMS, ResetMS, Granted, Wait int64 }

// Take calls CL.TAKE, of one limit and without FULL.
func (c *Conn) Take(args ...string) (r Taken) {
	c.T.Helper()
	raw := c.Do(append([]string{"CL.TAKE"}, args...)...)
	n, err := fmt.Sscanf(raw, "*7\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", &r.Limited, &r.Limit, &r.Remaining, &r.RetryMS,
		&r.ResetMS, &r.Granted, &r.Wait)
	if n != 7 {
		c.T.Fatalf("CL.TAKE %q: %q, %v", args, raw, err)
	}
	return r
}
