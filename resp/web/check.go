package web

import (
	"errors"
	"fmt"
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
	c, err := s.server.Check(joinKey(parts), q.policy)
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
		Detail: "retry in " + strconv.FormatInt(retryAfter(c.Retry), 10) + " s", Violated: []string{c.Policy},
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

// describe sets the fields of draft-ietf-httpapi-ratelimit-headers-10, and with legacy those that came before it. The names are written as
// people know them, not as http.Header writes them.
func describe(h http.Header, c *resp.Check, legacy bool) {
	name, number := quote(c.Policy), func(n int64) string { return strconv.FormatInt(n, 10) }
	policy := name + ";q=" + number(c.Count)
	if c.Period > 0 {
		w := max(1, seconds(c.Period))
		if c.Period < time.Second {
			policy = name + ";q=" + number(int64(float64(c.Count)*float64(time.Second)/float64(c.Period)))
		}
		policy += ";w=" + number(w)
	}
	h["RateLimit-Policy"] = []string{policy}
	h["RateLimit"] = []string{fmt.Sprintf("%s;r=%d;t=%d", name, c.Remaining, seconds(c.Reset))}
	if legacy {
		h["X-RateLimit-Limit"] = []string{number(c.Limit)}
		h["X-RateLimit-Remaining"] = []string{number(c.Remaining)}
		h["X-RateLimit-Reset"] = []string{number(seconds(c.Reset))}
	}
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
