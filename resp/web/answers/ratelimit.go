package answers

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"celld/resp/door"
)

// never is the Retry-After, in seconds, of a call that will not pass: a rule denies it.
const never = 86400

// RetryAfter is in whole seconds, at least 1, and not earlier than the call passes. What is in flight may end at any time before its lease
// does: then it is 1.
func RetryAfter(c *door.Taken) int64 {
	if l := &c.Limits[c.Binding]; l.Period == 0 && !l.ByRule {
		return 1
	}
	return max(1, seconds(c.Retry))
}

// resetOf is until the limit is full again or its rule ends; -1: it does not.
func resetOf(l *door.Limit) time.Duration {
	if l.ByRule {
		return l.Retry
	}
	return l.Reset
}

// seconds rounds up. What does not come is never.
func seconds(d time.Duration) int64 {
	if d < 0 {
		return never
	}
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// most is the largest integer of RFC 8941, which has 15 digits. A limit with a larger number has no item, as each item needs its numbers.
const most = 999_999_999_999_999

// mostItems is how many limits the fields may tell of: 1.5 KB, as clients and proxies have room for all headers of 4 KB or more.
const mostItems = 16

// Describe sets the fields of draft-ietf-httpapi-ratelimit-headers-11, with an item for each limit, and with legacy those that came before
// it. The names are written as people know them, not as http.Header writes them.
func Describe(h http.Header, c *door.Taken, legacy bool) {
	both := make([]byte, 0, 256)
	policies, limits := both[:0:128], both[128:128] // one piece of memory for most
	latest := int64(most)
	if c.Limited {
		latest = RetryAfter(c)
	}
	for i := 0; i < len(c.Limits) && len(c.Limits) <= mostItems; i++ {
		l := &c.Limits[i]
		quota := quotaOf(l)
		if quota > most || l.Remaining > most {
			continue
		}
		if len(policies) > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = appendParam(appendQuoted(policies, l.Name), "q", quota)
		if l.Period > 0 {
			policies = appendParam(policies, "w", max(1, seconds(l.Period)))
		}
		limits = appendParam(appendQuoted(limits, l.Name), "r", l.Remaining)
		if reset := resetOf(l); reset >= 0 {
			limits = appendParam(limits, "t", min(seconds(reset), latest))
		}
	}
	if len(policies) > 0 {
		h["RateLimit-Policy"], h["RateLimit"] = []string{string(policies)}, []string{string(limits)}
	}
	if legacy {
		l, number := &c.Limits[c.Binding], func(n int64) string { return strconv.FormatInt(n, 10) }
		h["X-RateLimit-Limit"] = []string{number(l.Limit)}
		h["X-RateLimit-Remaining"] = []string{number(l.Remaining)}
		h["X-RateLimit-Reset"] = []string{number(seconds(resetOf(l)))}
	}
}

// quotaOf is what a limit allows in its window, which is a second where it is shorter than that.
func quotaOf(l *door.Limit) int64 {
	if 0 < l.Period && l.Period < time.Second {
		return int64(min(float64(l.Count)*float64(time.Second)/float64(l.Period), 2*most))
	}
	return l.Count
}

func appendParam(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(append(append(b, ';'), name...), '='), n, 10)
}

// appendQuoted writes a string of RFC 8941. Characters that it cannot hold are written as in a URL.
func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c > 0x7e:
			b = fmt.Appendf(b, "%%%02X", c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
