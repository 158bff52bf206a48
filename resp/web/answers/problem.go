package answers

import (
	"encoding/json"
	"net/http"
	"strconv"

	"celld/resp/door"
)

// Problem is the body of an answer other than 200, by RFC 9457.
type Problem struct {
	Type     string   `json:"type,omitempty"` // omitted: the status says all
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`

	retry int64 // Retry-After, in s; 0: there is none
}

// Fail answers with an error in one line.
func Fail(w http.ResponseWriter, status int, detail string) { Failed(status, detail).Write(w) }

// Failed is an error in one line.
func Failed(status int, detail string) Problem {
	return Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Denied is the answer to a call that a limit denies. It names the limit as the RateLimit fields do.
func Denied(status int, c *door.Taken) Problem {
	retry := RetryAfter(c)
	p := Problem{Type: "https://iana.org/assignments/http-problem-types#quota-exceeded", Title: "Too many requests", Status: status,
		Detail: "retry in " + strconv.FormatInt(retry, 10) + " s", retry: retry}
	if l := &c.Limits[c.Binding]; !l.ByRule || l.Policy != "" {
		p.Violated = []string{l.Name}
	}
	return p
}

// Never is the problem of a call that will never pass.
func (p Problem) Never() Problem {
	p.Detail, p.retry = "it never passes", 0
	return p
}

// Status is that of a call that was not decided; other is for errors of the call itself.
func Status(err *door.CallError, other int) int {
	switch err.Code() {
	case "NOAUTH":
		return http.StatusUnauthorized
	case "NOPERM":
		return http.StatusForbidden
	case "NOPOLICY":
		return http.StatusNotFound
	case "STOREDOWN", "LOADING", "BUSY", "MISCONF", "OOM":
		return http.StatusServiceUnavailable
	}
	if err.Text == door.ErrMaxWaiters {
		return http.StatusServiceUnavailable
	}
	return other
}

// Write answers with the problem.
func (p Problem) Write(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(p.retry, 10))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="celld", charset="UTF-8"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	body := json.NewEncoder(w)
	body.SetEscapeHTML(false) // no browser takes it for HTML
	_ = body.Encode(p)        // and a line's end
}
