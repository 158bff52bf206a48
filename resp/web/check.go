package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"celld/resp"
)

// check decides on a request of a proxy's client, whatever its method: 200, which all proxies take for yes, or a denial.
func (s *site) check(w http.ResponseWriter, r *http.Request, path string) {
	q, err := parseQuestion(path)
	if err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	if why := s.byPage(r, q.sources); why != "" {
		s.refuse(w, r, why)
		return
	}
	parts := make([]string, len(q.sources))
	for i, from := range q.sources {
		if parts[i], err = from.read(r, s.limits.TrustedProxies); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	c, err := s.server.Check(joinKey(parts), q.policies...)
	if err != nil {
		failCheck(w, err)
		return
	}
	describe(w.Header(), &c, q.legacy)
	if !c.Limited {
		plain(w, http.StatusOK, "ok")
		return
	}
	w.Header().Set("Retry-After", strconv.FormatInt(retryAfter(c.Retry), 10))
	writeProblem(w, problem{
		Type: "https://iana.org/assignments/http-problem-types#quota-exceeded", Title: "Too many requests", Status: q.denial,
		Detail: "retry in " + strconv.FormatInt(retryAfter(c.Retry), 10) + " s", Violated: []string{c.Limits[c.Binding].Policy},
	})
}

// failCheck answers a check that was not decided. A proxy takes it for an outage, and does what its settings say for that.
func failCheck(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if failed := (*resp.CallError)(nil); errors.As(err, &failed) {
		switch failed.Code() {
		case "NOPOLICY":
			status = http.StatusNotFound
		case "STOREDOWN", "LOADING", "BUSY", "MISCONF", "OOM":
			status = http.StatusServiceUnavailable
		}
	}
	fail(w, status, err.Error())
}

// never is the Retry-After, in seconds, of a call that will not pass: a rule denies it.
const never = 86400

// retryAfter is in whole seconds, at least 1, and not earlier than the call passes.
func retryAfter(d time.Duration) int64 {
	if d < 0 {
		return never
	}
	return max(1, seconds(d))
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// mostDigits is how many digits an integer of RFC 8941 has. A larger one is left out.
const mostDigits = 999_999_999_999_999

// describe sets the fields of draft-ietf-httpapi-ratelimit-headers-11, with an item for each limit, and with legacy those that came before
// it. The names are written as people know them, not as http.Header writes them.
func describe(h http.Header, c *resp.Check, legacy bool) {
	var policies, limits []byte
	latest := int64(math.MaxInt64)
	if c.Limited {
		latest = retryAfter(c.Retry)
	}
	for i := range c.Limits {
		l := &c.Limits[i]
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = appendPolicy(policies, l)
		limits = appendParam(append(limits, quote(l.Name)...), "r", l.Remaining)
		limits = appendParam(limits, "t", min(seconds(l.Reset), latest))
	}
	h["RateLimit-Policy"], h["RateLimit"] = []string{string(policies)}, []string{string(limits)}
	if legacy {
		l, number := &c.Limits[c.Binding], func(n int64) string { return strconv.FormatInt(n, 10) }
		h["X-RateLimit-Limit"] = []string{number(l.Limit)}
		h["X-RateLimit-Remaining"] = []string{number(l.Remaining)}
		h["X-RateLimit-Reset"] = []string{number(seconds(l.Reset))}
	}
}

// appendPolicy writes what a limit allows. A window below a second is written as one of a second.
func appendPolicy(b []byte, l *resp.CheckLimit) []byte {
	count := l.Count
	if 0 < l.Period && l.Period < time.Second {
		count = int64(min(float64(count)*float64(time.Second)/float64(l.Period), 2*mostDigits))
	}
	b = appendParam(append(b, quote(l.Name)...), "q", count)
	if l.Period > 0 {
		b = appendParam(b, "w", max(1, seconds(l.Period)))
	}
	return b
}

func appendParam(b []byte, name string, n int64) []byte {
	if n > mostDigits {
		return b
	}
	return strconv.AppendInt(append(append(append(b, ';'), name...), '='), n, 10)
}

// quote writes a string of RFC 8941. Characters that it cannot hold are written as in a URL.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
