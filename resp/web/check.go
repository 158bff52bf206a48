package web

import (
	"errors"
	"net/http"

	"celld/resp/door"
	"celld/resp/web/answers"
)

// check decides on a request of a proxy's client, whatever its method: 200, which all proxies take for yes, or a denial.
func (s *site) check(w http.ResponseWriter, r *http.Request, path string) {
	q, err := parseQuestion(path)
	if err != nil {
		answers.Fail(w, http.StatusNotFound, err.Error())
		return
	}
	var headers []string
	for _, from := range q.sources {
		headers = append(headers, from.header)
	}
	if why := s.guard.Program(r, headers...); why != "" {
		s.refuse(w, r, why)
		return
	}
	parts := make([]string, len(q.sources))
	for i, from := range q.sources {
		if parts[i], err = from.read(r, s.limits.TrustedProxies); err != nil {
			answers.Fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	c, err := s.server.Door.Check(r.Context(), s.api.Caller(r), joinKey(parts), q.policies...)
	if err != nil {
		failCheck(w, err)
		return
	}
	answers.Describe(w.Header(), &c, q.legacy)
	if !c.Limited {
		plain(w, http.StatusOK, "ok")
		return
	}
	answers.Denied(q.denial, &c).Write(w)
}

// failCheck answers a check that was not decided. A proxy takes it for an outage, and does what its settings say for that.
func failCheck(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if failed := (*door.CallError)(nil); errors.As(err, &failed) {
		status = answers.Status(failed, status)
	}
	answers.Fail(w, status, err.Error())
}
