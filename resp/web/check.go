package web

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"celld/resp/door"
	"celld/resp/web/answers"
)

// A proxy's question is what it asks by a path: to take, to look, or to give back.
const (
	toCheck = "check"
	toLook  = "look"
	toGive  = "give"
)

// check decides on a request of a proxy's client, whatever its method: 200, which all proxies take for yes, or a denial.
func (s *site) check(w http.ResponseWriter, r *http.Request, what, path string) {
	q, err := parseQuestion(path)
	switch {
	case err == errCost:
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	case err != nil || what == toGive && (q.legacy || q.denial != http.StatusTooManyRequests || q.several()):
		answers.Fail(w, http.StatusNotFound, cmp.Or(err, errForm).Error())
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
	key, seen, err := s.keyOf(r, q.sources)
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if what == toGive {
		s.give(w, r, key, &q)
		return
	}
	ask := door.Ask{Key: key, Seen: seen, Options: q.costs}
	for _, name := range q.policies {
		ask.Limits = append(ask.Limits, "@"+name)
	}
	if what == toLook {
		ask.Options = append(ask.Options, door.Option{Name: "PEEK"})
	}
	c, err := s.server.Door.TakeOne(r.Context(), s.api.Caller(r), ask)
	if err != nil {
		failCheck(w, err)
		return
	}
	answers.Describe(w.Header(), &c, q.legacy)
	if !c.Limited {
		plain(w, http.StatusOK, "ok")
		return
	}
	denied := answers.Denied(q.denial, &c)
	if c.Retry < 0 && !c.Limits[c.Binding].ByRule { // it costs more than the limit has
		denied = denied.Never()
	}
	denied.Write(w)
}

// give gives back to each policy, and answers how much that was at most.
func (s *site) give(w http.ResponseWriter, r *http.Request, key string, q *question) {
	var asks []door.Ask
	options := []door.Option{{Name: "GIVE", N: 1}}
	if len(q.costs) > 0 {
		options = append([]door.Option{{Name: "GIVE", N: q.costs[0].N}}, q.costs[1:]...)
	}
	for _, name := range q.policies {
		asks = append(asks, door.Ask{Key: key, Limits: []string{"@" + name}, Options: options})
	}
	given, refused := int64(0), error(nil)
	err := s.server.Door.Take(r.Context(), s.api.Caller(r), asks, func(t *door.Taken, err error) {
		if refused = cmp.Or(refused, err); err == nil {
			given = max(given, -t.Granted)
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		failCheck(w, err)
		return
	}
	plain(w, http.StatusOK, strconv.FormatInt(given, 10))
}

// failCheck answers a check that was not decided. A proxy takes it for an outage, and does what its settings say for that.
func failCheck(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.As(err, new(*door.MisreadError)) { // the path asks for what the policies do not have
		status = http.StatusBadRequest
	}
	if failed := (*door.CallError)(nil); errors.As(err, &failed) {
		status = answers.Status(failed, status)
	}
	answers.Fail(w, status, err.Error())
}
