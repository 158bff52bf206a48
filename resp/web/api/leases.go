package api

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"celld/resp/command/argument"
	"celld/resp/command/limit"
	"celld/resp/door"
	"celld/resp/jsonbody"
	"celld/resp/web/answers"
	"celld/store"
)

// change is the body of /v1/give, /v1/release, /v1/renew and /v1/settle.
type change struct {
	Key   *string `json:"key"`
	Limit *string `json:"limit"`
	Lease *int64  `json:"lease"`
	MS    *int64  `json:"ms"`
	N     *int64  `json:"n"`
	Of    *string `json:"of"`
	Costs costs   `json:"costs"`
}

// costs are those of limits by their names.
type costs map[string]int64

// options are the costs as those of CL.TAKE, in the order of the names.
func (c costs) options() (all []door.Option) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all = append(all, door.Option{Name: "COST", N: c[name]}, door.Option{Name: "OF", Text: name})
	}
	return all
}

// give is POST /v1/give.
func (a API) give(w http.ResponseWriter, r *http.Request, x *exchange) {
	c, err := readChange(x.body.Bytes(), "limit", "n", "of?")
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	ask := door.Ask{Key: *c.Key, Limits: []string{*c.Limit}, Options: []door.Option{{Name: "GIVE", N: *c.N}}}
	if c.Of != nil {
		ask.Options = append(ask.Options, door.Option{Name: "OF", Text: *c.Of})
	}
	var refused error
	var given int64
	err = a.Door.Take(r.Context(), a.Caller(r), []door.Ask{ask}, func(t *door.Taken, err error) {
		if refused = err; err == nil {
			given = -t.Granted
		}
	})
	answerChange(w, fmt.Sprintf(`{"given":%d}`, given), cmp.Or(err, refused))
}

func (a API) release(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.changeLease(w, r, x, "cl.release", "lease")
}

func (a API) renew(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.changeLease(w, r, x, "cl.renew", "lease", "ms")
}

func (a API) settle(w http.ResponseWriter, r *http.Request, x *exchange) {
	a.changeLease(w, r, x, "cl.settle", "lease", "n?", "costs?")
}

// changeLease changes a lease by a command, whose values are in these fields.
func (a API) changeLease(w http.ResponseWriter, r *http.Request, x *exchange, command string, fields ...string) {
	c, err := readChange(x.body.Bytes(), fields...)
	l := limit.LeaseChange{Command: command, N: store.Kept}
	if err == nil {
		l.Key, l.ID = []byte(*c.Key), *c.Lease
		l.Of, err = c.Costs.named()
	}
	if n := cmp.Or(c.MS, c.N); n != nil {
		l.N = *n
	} else if err == nil && command == "cl.settle" && l.Of == nil {
		err = errors.New("n: is missing, and so are costs")
	}
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	did, err := a.Door.ChangeLease(a.Caller(r), l)
	answerChange(w, fmt.Sprintf(`{"done":%v}`, did), err)
}

// answerChange answers with a body, or with an error.
func answerChange(w http.ResponseWriter, body string, err error) {
	if err != nil {
		failed(w, err)
		return
	}
	writeJSON(w, http.StatusOK, []byte(body))
}

// named are the costs by the names that they have as limits.
func (c costs) named() (all []store.NamedCost, err error) {
	for _, text := range slices.Sorted(maps.Keys(c)) {
		name, problem := argument.ParseName([]byte(text))
		if problem != "" {
			return nil, errors.New("costs: " + strings.TrimPrefix(problem, "ERR "))
		}
		all = append(all, store.NamedCost{Name: name, N: c[text]})
	}
	return all, nil
}

// readChange reads a body that has a key and these fields, and no others. One with a ? may be missing.
func readChange(body []byte, fields ...string) (c change, err error) {
	if err := jsonbody.Read(body, &c, jsonbody.Strictly); err != nil {
		return c, err
	}
	if c.Key == nil {
		return c, errors.New("key: is missing")
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"limit", c.Limit != nil}, {"lease", c.Lease != nil}, {"ms", c.MS != nil}, {"n", c.N != nil}, {"of", c.Of != nil},
		{"costs", c.Costs != nil}} {
		switch wanted := slices.Contains(fields, f.name); {
		case wanted && !f.given:
			err = fmt.Errorf("%s: is missing", f.name)
		case f.given && !wanted && !slices.Contains(fields, f.name+"?"):
			return c, fmt.Errorf("%s: an unknown field", f.name)
		}
	}
	return c, err
}

const showRoot = "/v1/show/"

// show is GET /v1/show/{key}.
func (a API) show(w http.ResponseWriter, r *http.Request) {
	all, err := a.Door.Show(a.Caller(r), strings.TrimPrefix(r.URL.Path, showRoot))
	if err != nil {
		failed(w, err)
		return
	}
	b := []byte{'['}
	for i, one := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendShown(b, one)
	}
	writeJSON(w, http.StatusOK, append(b, ']'))
}

// appendShown appends a limit or a string as an object.
func appendShown(b []byte, one limit.Shown) []byte {
	before := byte('{')
	for _, fact := range one {
		b = append(appendString(append(b, before), fact.Name), ':')
		switch v := fact.Value.(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			b = appendString(b, v)
		default:
			b = append(b, "null"...)
		}
		before = ','
	}
	return append(b, '}')
}
