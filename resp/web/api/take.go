package api

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"celld/resp/door"
	"celld/resp/jsonbody"
	"celld/resp/web/answers"
)

// call is the body of /v1/take, or one of its calls. A key that is missing is not the empty one, so it is a pointer.
type call struct {
	Calls   []call   `json:"calls"`
	Key     *string  `json:"key"`
	Limits  []string `json:"limits"`
	Keys    []pair   `json:"keys"`
	Cost    *int64   `json:"cost"`
	Costs   costs    `json:"costs"`
	Mode    *string  `json:"mode"`
	MaxMS   *int64   `json:"max_ms"`
	LeaseMS *int64   `json:"lease_ms"`
	ID      *string  `json:"id"`
	Full    bool     `json:"full"`
	US      bool     `json:"us"`
}

// pair is a key with its limits.
type pair struct {
	Key    *string  `json:"key"`
	Limits []string `json:"limits"`
}

// modes are the options of CL.TAKE by their names here; "" is none.
var modes = map[string]string{"take": "", "peek": "PEEK", "upto": "UPTO", "force": "FORCE", "reserve": "RESERVE", "wait": "WAIT"}

// take is POST /v1/take.
func (a API) take(w http.ResponseWriter, r *http.Request, x *exchange) {
	var c call
	if err := jsonbody.Read(x.body.Bytes(), &c, jsonbody.Strictly); err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	denial, err := denialOf(r)
	if err == nil && c.Calls != nil && denial != http.StatusOK {
		err = fmt.Errorf("status=429 is for one call: each of several has its own answer")
	}
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if c.Calls != nil {
		a.takeAll(w, r, x, &c)
		return
	}
	ask, err := c.ask("")
	if err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	var refused error
	bound(w, c.wait())
	err = a.Door.Take(r.Context(), a.Caller(r), []door.Ask{ask}, func(t *door.Taken, err error) {
		if refused = err; err == nil {
			x.answer = c.form().appendTaken(x.answer, t)
			x.tell(t, denial, c.Keys == nil)
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		misread(err, "", &c).Write(w)
		return
	}
	x.reply(w)
}

// misread is the problem of a call, which names the field of a limit that is wrong by itself. at begins its path.
func misread(err error, at string, c *call) answers.Problem {
	p, wrong := problemOf(err), (*door.MisreadError)(nil)
	if errors.As(err, &wrong) && p.Status < http.StatusInternalServerError {
		if wrong.Limit >= 0 {
			at += c.limitAt(wrong.Limit)
		}
		if at = strings.TrimSuffix(at, "."); at != "" {
			p.Detail = at + ": " + p.Detail
		}
	}
	return p
}

// limitAt is the path of the nth limit.
func (c *call) limitAt(n int) string {
	for i := range c.Keys {
		if n < len(c.Keys[i].Limits) {
			return fmt.Sprintf("keys[%d].limits[%d]", i, n)
		}
		n -= len(c.Keys[i].Limits)
	}
	return fmt.Sprintf("limits[%d]", n)
}

// denialOf is the status of a call that is denied.
func denialOf(r *http.Request) (status int, err error) {
	switch r.URL.RawQuery {
	case "":
		return http.StatusOK, nil
	case "status=429":
		return http.StatusTooManyRequests, nil
	}
	return 0, fmt.Errorf("unknown query: expected ?status=429, or none")
}

// tell notes what an answer has beside its body: the fields of headers, and a denial. Limits of several keys have no fields, as their items
// would have the same names.
func (x *exchange) tell(t *door.Taken, denial int, described bool) {
	x.header = http.Header{}
	if described {
		answers.Describe(x.header, t, false)
	}
	if t.Limited && t.Retry >= 0 {
		x.header["Retry-After"] = []string{strconv.FormatInt(answers.RetryAfter(t), 10)}
	}
	if x.denied = t.Limited && denial != http.StatusOK; x.denied {
		x.problem = answers.Denied(denial, t)
		if t.Retry < 0 {
			x.problem = x.problem.Never()
		}
	}
}

// reply answers a request of one call.
func (x *exchange) reply(w http.ResponseWriter) {
	maps.Copy(w.Header(), x.header)
	if x.denied {
		x.problem.Write(w)
	} else {
		writeJSON(w, http.StatusOK, x.answer)
	}
}

// takeAll answers a request of several calls. Nothing is taken if one is not well formed.
func (a API) takeAll(w http.ResponseWriter, r *http.Request, x *exchange, c *call) {
	if err := c.onlyCalls(); err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	wait := time.Duration(len(c.Calls)) * time.Second // for an engine that is far, as each with a lease asks it by itself
	asks := make([]door.Ask, len(c.Calls))
	for i := range c.Calls {
		var err error
		if asks[i], err = c.Calls[i].ask(fmt.Sprintf("calls[%d].", i)); err != nil {
			answers.Fail(w, http.StatusBadRequest, err.Error())
			return
		}
		wait += c.Calls[i].wait()
	}
	x.answer = append(x.answer, `{"results":[`...)
	bound(w, wait)
	n := 0
	err := a.Door.Take(r.Context(), a.Caller(r), asks, func(t *door.Taken, err error) {
		if n > 0 {
			x.answer = append(x.answer, ',')
		}
		if err != nil {
			x.answer = appendProblem(x.answer, problemOf(err))
		} else {
			x.answer = c.Calls[n].form().appendTaken(x.answer, t)
		}
		n++
	})
	if wrong := (*door.MisreadError)(nil); errors.As(err, &wrong) {
		misread(err, fmt.Sprintf("calls[%d].", wrong.Ask), &c.Calls[wrong.Ask]).Write(w)
		return
	}
	if err != nil {
		failed(w, err)
		return
	}
	x.answer = append(x.answer, "]}"...)
	x.reply(w)
}

// appendProblem appends what stands for a call that was not decided.
func appendProblem(b []byte, p answers.Problem) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(p.Status), 10)
	return append(appendString(append(b, `,"detail":`...), p.Detail), '}')
}

// onlyCalls says what is wrong with a body that has calls.
func (c *call) onlyCalls() error {
	switch {
	case c.Key != nil || c.Limits != nil || c.Keys != nil || c.Cost != nil || c.Costs != nil || c.Mode != nil || c.MaxMS != nil ||
		c.LeaseMS != nil || c.ID != nil || c.Full || c.US:
		return fmt.Errorf("calls: no other field may stand beside it")
	case len(c.Calls) < 1 || len(c.Calls) > mostCalls:
		return fmt.Errorf("calls: expected 1 to %d", mostCalls)
	}
	for i := range c.Calls {
		if c.Calls[i].Calls != nil {
			return fmt.Errorf("calls[%d].calls: calls have no calls", i)
		}
	}
	return nil
}

// ask is what a call asks for. The error says what is wrong with which field, whose path begins with at.
func (c *call) ask(at string) (a door.Ask, err error) {
	switch {
	case c.Keys == nil && c.Key == nil:
		return a, fmt.Errorf("%skey: is missing", at)
	case c.limits() > mostLimits:
		return a, fmt.Errorf("%slimits: expected %d at most, in all", at, mostLimits)
	case c.Keys == nil:
		a.Key, a.Limits = *c.Key, c.Limits
		err = checkLimits(at, c.Limits)
	case c.Key != nil || c.Limits != nil:
		return a, fmt.Errorf("%skeys: neither key nor limits may stand beside it", at)
	case len(c.Keys) == 0:
		return a, fmt.Errorf("%skeys: expected one at least", at)
	case c.Full:
		return a, fmt.Errorf("%sfull: keys are always told of", at)
	default:
		err = c.pairs(&a, at)
	}
	if err != nil {
		return a, err
	}
	a.Options, err = c.options(at)
	return a, err
}

// options are those of a call.
func (c *call) options(at string) (all []door.Option, err error) {
	option, known := "", true
	if c.Mode != nil {
		option, known = modes[*c.Mode]
	}
	most := int64(0)
	switch waits := option == "RESERVE" || option == "WAIT"; {
	case !known:
		return nil, fmt.Errorf("%smode: expected take, peek, upto, force, reserve or wait", at)
	case c.MaxMS != nil && !waits:
		return nil, fmt.Errorf("%smax_ms: needs mode reserve or wait", at)
	case c.MaxMS != nil:
		most = *c.MaxMS
	}
	if option != "" {
		all = append(all, door.Option{Name: option, N: most})
	}
	if c.Cost != nil {
		all = append(all, door.Option{Name: "COST", N: *c.Cost})
	}
	all = append(all, c.Costs.options()...)
	if c.LeaseMS != nil {
		all = append(all, door.Option{Name: "LEASE", N: *c.LeaseMS})
	}
	if c.ID != nil {
		all = append(all, door.Option{Name: "ID", Text: *c.ID})
	}
	return all, nil
}

// mostLimits is how many limits a call may have. That is checked before each gets its key, of up to 64 KB.
const mostLimits = 128

// limits is how many limits a call has.
func (c *call) limits() (n int) {
	n = len(c.Limits)
	for i := range c.Keys {
		n += len(c.Keys[i].Limits)
	}
	return n
}

// pairs are keys, each with its limits.
func (c *call) pairs(a *door.Ask, at string) (err error) {
	a.Keys = []string{}
	for i, p := range c.Keys {
		path := fmt.Sprintf("%skeys[%d].", at, i)
		if p.Key == nil {
			return fmt.Errorf("%skey: is missing", path)
		}
		if err = checkLimits(path, p.Limits); err != nil {
			return err
		}
		for _, limit := range p.Limits {
			a.Keys, a.Limits = append(a.Keys, *p.Key), append(a.Limits, limit)
		}
	}
	return nil
}

// checkLimits says which of limits is none.
func checkLimits(at string, limits []string) error {
	if len(limits) == 0 {
		return fmt.Errorf("%slimits: expected one at least, such as 100/1m or @gold", at)
	}
	for i, text := range limits {
		if !strings.HasPrefix(text, "@") && !strings.Contains(text, "/") {
			return fmt.Errorf("%slimits[%d]: expected count/period, such as 100/1m, or @policy", at, i)
		}
	}
	return nil
}

// wait is how long a call may wait.
func (c *call) wait() time.Duration {
	if c.Mode == nil || *c.Mode != "wait" || c.MaxMS == nil {
		return 0
	}
	return time.Duration(min(max(0, *c.MaxMS), 1<<40)) * time.Millisecond
}

// form is how a take is answered.
type form struct {
	unit  time.Duration
	names string // of times: _ms or _us
	keys  bool   // it is of several keys
	full  bool
}

func (c *call) form() form {
	f := form{time.Millisecond, "_ms", c.Keys != nil, c.Full}
	if c.US {
		f.unit, f.names = time.Microsecond, "_us"
	}
	return f
}

// appendTaken appends a take that is decided, as JSON.
func (f form) appendTaken(b []byte, t *door.Taken) []byte {
	l := &t.Limits[t.Binding]
	b = strconv.AppendBool(append(b, `{"allowed":`...), !t.Limited)
	switch {
	case !f.keys:
		b = appendInt(appendInt(b, "limit", l.Limit), "remaining", l.Remaining)
	case t.Limited:
		b = appendInt(b, "bound", int64(t.Binding)+1)
	default:
		b = appendInt(b, "bound", 0)
	}
	if b = f.appendRetry(b, t.Limited, t.Retry); !f.keys {
		b = f.appendTime(b, "reset_after", t.Reset)
	}
	b = f.appendTime(appendInt(b, "granted", t.Granted), "wait", t.Wait)
	if t.Lease != 0 {
		b = appendInt(b, "lease", t.Lease)
	}
	if l.ByRule {
		b = appendText(appendText(b, "bound_by", ""), "policy", "")
	} else {
		b = appendText(appendText(b, "bound_by", l.Text), "policy", l.Policy)
	}
	switch {
	case f.keys:
		b = f.appendEach(append(b, `,"keys":[`...), t)
	case f.full:
		b = f.appendEach(append(b, `,"full":[`...), t)
	}
	return append(b, '}')
}

// appendEach appends what each limit says.
func (f form) appendEach(b []byte, t *door.Taken) []byte {
	for i := range t.Limits {
		l := &t.Limits[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendBool(append(b, `{"allowed":`...), !l.Limited)
		b = appendInt(appendInt(b, "limit", l.Limit), "remaining", l.Remaining)
		b = f.appendTime(f.appendRetry(b, l.Limited, l.Retry), "reset_after", l.Reset)
		b = append(appendText(appendText(b, "text", l.Text), "policy", l.Policy), '}')
	}
	return append(b, ']')
}

// appendRetry appends when a call that was denied passes. One that never will says so.
func (f form) appendRetry(b []byte, limited bool, d time.Duration) []byte {
	if d >= 0 {
		return f.appendTime(b, "retry_after", d)
	}
	if limited {
		b = append(b, `,"never":true`...)
	}
	return append(append(append(b, `,"retry_after`...), f.names...), `":null`...)
}

// appendTime appends a time in the form's unit, rounded up.
func (f form) appendTime(b []byte, name string, d time.Duration) []byte {
	n := int64(d / f.unit)
	if d%f.unit > 0 {
		n++
	}
	b = append(append(append(append(b, `,"`...), name...), f.names...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

func appendInt(b []byte, name string, n int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

// appendText appends a text, or null for none.
func appendText(b []byte, name, text string) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	if text == "" {
		return append(b, "null"...)
	}
	return appendString(b, text)
}

// appendString appends a string. What is not UTF-8 becomes U+FFFD.
func appendString(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // whose error says that
	return b
}
