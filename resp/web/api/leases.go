package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"celld/resp/jsonbody"
	"celld/resp/web/answers"
	"celld/resp/wire"
)

// change is the body of /v1/give, /v1/release, /v1/renew and /v1/settle.
type change struct {
	Key   *string `json:"key"`
	Limit *string `json:"limit"`
	Lease *int64  `json:"lease"`
	MS    *int64  `json:"ms"`
	N     *int64  `json:"n"`
}

func (a API) give(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.change(w, r, x, "CL.GIVE", "given", "limit", "n")
}

func (a API) release(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.change(w, r, x, "CL.RELEASE", "done", "lease")
}

func (a API) renew(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.change(w, r, x, "CL.RENEW", "done", "lease", "ms")
}

func (a API) settle(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.change(w, r, x, "CL.SETTLE", "done", "lease", "n")
}

// change runs a command of a key and these fields, and answers with its number under a name.
func (a API) change(w http.ResponseWriter, r *http.Request, x *exchange, command, name string, fields ...string) {
	words, err := readChange(x.body.Bytes(), command, fields)
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	x.commands = wire.AppendCommand(x.commands, words...)
	var n int64
	if err = a.do(r, x); err == nil {
		n, err = x.integer()
	}
	if err != nil {
		failed(w, err)
		return
	}
	text := strconv.FormatInt(n, 10)
	if name == "done" {
		text = strconv.FormatBool(n == 1)
	}
	writeJSON(w, http.StatusOK, fmt.Appendf(nil, `{%q:%s}`, name, text))
}

// readChange reads a body that has a key and these fields, and no others.
func readChange(body []byte, command string, fields []string) (words []string, err error) {
	var c change
	if err := jsonbody.Read(body, &c, jsonbody.Strictly); err != nil {
		return nil, err
	}
	if c.Key == nil {
		return nil, errors.New("key: is missing")
	}
	words = []string{command, *c.Key}
	given := map[string]string{}
	for name, n := range map[string]*int64{"lease": c.Lease, "ms": c.MS, "n": c.N} {
		if n != nil {
			given[name] = strconv.FormatInt(*n, 10)
		}
	}
	if c.Limit != nil {
		given["limit"] = *c.Limit
	}
	for _, name := range fields {
		word, there := given[name]
		if !there {
			return nil, fmt.Errorf("%s: is missing", name)
		}
		delete(given, name)
		words = append(words, word)
	}
	for name := range given {
		return nil, fmt.Errorf("%s: an unknown field", name)
	}
	return words, nil
}

const showRoot = "/v1/show/"

// show is GET /v1/show/{key}.
func (a API) show(w http.ResponseWriter, r *http.Request) {
	x := newExchange()
	defer x.end()
	x.commands = wire.AppendCommand(x.commands, "CL.SHOW", strings.TrimPrefix(r.URL.Path, showRoot))
	if err := a.do(r, x); err != nil {
		failed(w, err)
		return
	}
	text, err := x.appendJSON(nil)
	if err != nil {
		failed(w, err)
		return
	}
	writeJSON(w, http.StatusOK, text)
}

// appendJSON appends the next reply as JSON: maps as objects, null, strings, numbers.
func (r *replies) appendJSON(b []byte) ([]byte, error) {
	reply, err := r.next()
	if err != nil {
		return nil, err
	}
	open, closing, between := byte('['), byte(']'), ","
	switch {
	case reply.Null:
		return append(b, "null"...), nil
	case strings.IndexByte("*~", reply.Kind) >= 0:
	case reply.Kind == '%':
		open, closing, between = '{', '}', ":,"
	case reply.Kind == ':':
		return append(b, reply.Text...), nil
	default:
		return appendString(b, string(reply.Text)), nil
	}
	b = append(b, open)
	for i := range reply.N {
		if i > 0 {
			b = append(b, between[(i-1)%len(between)])
		}
		if b, err = r.appendJSON(b); err != nil {
			return nil, err
		}
	}
	return append(b, closing), nil
}
