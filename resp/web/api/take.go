package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"celld/resp"
	"celld/resp/jsonbody"
	"celld/resp/web/answers"
	"celld/resp/wire"
)

// call is the body of /v1/take, or one of its calls. A key that is missing is not the empty one, so it is a pointer.
type call struct {
	Calls   []call   `json:"calls"`
	Key     *string  `json:"key"`
	Limits  []string `json:"limits"`
	Keys    []pair   `json:"keys"`
	Cost    *int64   `json:"cost"`
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

// modes are the options of CL.TAKE by their names here.
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
	if x.words, err = c.words(x.words, ""); err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	x.commands = wire.AppendCommand(x.commands, x.words...)
	err = a.do(w, r, x, c.wait(), func(t *resp.Taken) {
		x.answer = c.form().appendTaken(x.answer, t)
		x.tell(t, denial, c.Keys == nil)
	})
	if err == nil {
		if err = x.decided(); err == nil {
			x.reply(w)
			return
		}
	}
	p := problemOf(err)
	if at := a.wrong(&c); at != "" && p.Status < http.StatusInternalServerError {
		p.Detail = at + ": " + p.Detail
	}
	p.Write(w)
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
func (x *exchange) tell(t *resp.Taken, denial int, described bool) {
	x.header = http.Header{}
	if described {
		answers.Describe(x.header, &t.Check, false)
	}
	if t.Limited && t.Retry >= 0 {
		x.header["Retry-After"] = []string{strconv.FormatInt(answers.RetryAfter(t.Retry), 10)}
	}
	if x.denied = t.Limited && denial != http.StatusOK; x.denied {
		x.problem = answers.Denied(denial, &t.Check)
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

// decided reads the reply of a take, of which package resp has told, or the error.
func (x *exchange) decided() error {
	head, err := x.next()
	for left := head.N; left > 0 && err == nil; left-- {
		if head, err = x.next(); err == nil {
			left += head.N
		}
	}
	return err
}

// takeAll answers a request of several calls. Nothing is taken if one is not well formed.
func (a API) takeAll(w http.ResponseWriter, r *http.Request, x *exchange, c *call) {
	if err := c.onlyCalls(); err != nil {
		answers.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	wait := time.Duration(len(c.Calls)) * time.Second // for an engine that is far, as each with a lease asks it by itself
	for i := range c.Calls {
		one, path := &c.Calls[i], fmt.Sprintf("calls[%d]", i)
		var err error
		if x.words, err = one.words(x.words[:0], path+"."); err != nil {
			answers.Fail(w, http.StatusBadRequest, err.Error())
			return
		}
		if err := a.Server.Misread(bytesOf(x.words)); err != nil {
			p := problemOf(err)
			if p.Status < http.StatusInternalServerError {
				if at := a.wrong(one); at != "" {
					path += "." + at
				}
				p.Detail = path + ": " + p.Detail
			}
			p.Write(w)
			return
		}
		x.commands = wire.AppendCommand(x.commands, x.words...)
		wait += one.wait()
	}
	decided := make([]resp.Taken, 0, len(c.Calls))
	err := a.do(w, r, x, wait, func(t *resp.Taken) {
		decided = append(decided, *t)
		decided[len(decided)-1].Limits = slices.Clone(t.Limits)
	})
	if err != nil {
		failed(w, err)
		return
	}
	x.answer = append(x.answer, `{"results":[`...)
	for i := range c.Calls {
		if i > 0 {
			x.answer = append(x.answer, ',')
		}
		if err := x.decided(); err != nil {
			x.answer = appendProblem(x.answer, problemOf(err))
			continue
		}
		x.answer = c.Calls[i].form().appendTaken(x.answer, &decided[0])
		decided = decided[1:]
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
	case c.Key != nil || c.Limits != nil || c.Keys != nil || c.Cost != nil || c.Mode != nil || c.MaxMS != nil || c.LeaseMS != nil ||
		c.ID != nil || c.Full || c.US:
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

// words appends those of a call's command. The error says what is wrong with which field, whose path begins with at.
func (c *call) words(words []string, at string) (_ []string, err error) {
	switch {
	case c.Keys == nil && c.Key == nil:
		return nil, fmt.Errorf("%skey: is missing", at)
	case c.limits() > mostLimits:
		return nil, fmt.Errorf("%slimits: expected %d at most, in all", at, mostLimits)
	case c.Keys == nil:
		words = append(words, "CL.TAKE", *c.Key)
		if words, err = appendLimits(words, at, nil, c.Limits); err != nil {
			return nil, err
		}
	case c.Key != nil || c.Limits != nil:
		return nil, fmt.Errorf("%skeys: neither key nor limits may stand beside it", at)
	case len(c.Keys) == 0:
		return nil, fmt.Errorf("%skeys: expected one at least", at)
	case c.Full:
		return nil, fmt.Errorf("%sfull: keys are always told of", at)
	default:
		if words, err = c.pairs(words, at); err != nil {
			return nil, err
		}
	}
	option, known := "", true
	if c.Mode != nil {
		option, known = modes[*c.Mode]
	}
	switch {
	case !known:
		return nil, fmt.Errorf("%smode: expected take, peek, upto, force, reserve or wait", at)
	case c.MaxMS != nil && option != "RESERVE" && option != "WAIT":
		return nil, fmt.Errorf("%smax_ms: needs mode reserve or wait", at)
	}
	if option != "" {
		words = append(words, option)
	}
	if option == "RESERVE" || option == "WAIT" {
		most := int64(0)
		if c.MaxMS != nil {
			most = *c.MaxMS
		}
		if c.US {
			most = min(max(most, -1), 1<<40) * 1000 // neither end is allowed, and the product does not wrap
		}
		words = append(words, strconv.FormatInt(most, 10))
	}
	if c.Cost != nil {
		words = append(words, "COST", strconv.FormatInt(*c.Cost, 10))
	}
	if c.LeaseMS != nil {
		words = append(words, "LEASE", strconv.FormatInt(*c.LeaseMS, 10))
	}
	if c.ID != nil {
		words = append(words, "ID", *c.ID)
	}
	if c.US {
		words = append(words, "US")
	}
	return words, nil
}

// mostLimits is how many limits a call may have. That is checked before each gets its words, with a key of up to 64 KB.
const mostLimits = 128

// limits is how many limits a call has.
func (c *call) limits() (n int) {
	n = len(c.Limits)
	for i := range c.Keys {
		n += len(c.Keys[i].Limits)
	}
	return n
}

// pairs appends the words of a CL.MTAKE up to its options.
func (c *call) pairs(words []string, at string) (_ []string, err error) {
	n := 0
	words = append(words, "CL.MTAKE", "")
	for i, p := range c.Keys {
		path := fmt.Sprintf("%skeys[%d].", at, i)
		if p.Key == nil {
			return nil, fmt.Errorf("%skey: is missing", path)
		}
		if words, err = appendLimits(words, path, p.Key, p.Limits); err != nil {
			return nil, err
		}
		n += len(p.Limits)
	}
	words[1] = strconv.Itoa(n)
	return words, nil
}

// appendLimits appends limits, each behind its key if there is one. What is no limit would be an option.
func appendLimits(words []string, at string, key *string, limits []string) ([]string, error) {
	if len(limits) == 0 {
		return nil, fmt.Errorf("%slimits: expected one at least, such as 100/1m or @gold", at)
	}
	for i, text := range limits {
		if !strings.HasPrefix(text, "@") && !strings.Contains(text, "/") {
			return nil, fmt.Errorf("%slimits[%d]: expected count/period, such as 100/1m, or @policy", at, i)
		}
		if key != nil {
			words = append(words, *key)
		}
		words = append(words, text)
	}
	return words, nil
}

// wrong finds the field of a limit that is wrong by itself, or returns "".
func (a API) wrong(c *call) string {
	find := func(at string, limits []string) string {
		for i, text := range limits {
			if a.Server.Misread(bytesOf([]string{"CL.TAKE", "", text})) != nil {
				return fmt.Sprintf("%slimits[%d]", at, i)
			}
		}
		return ""
	}
	if at := find("", c.Limits); at != "" {
		return at
	}
	for i := range c.Keys {
		if at := find(fmt.Sprintf("keys[%d].", i), c.Keys[i].Limits); at != "" {
			return at
		}
	}
	return ""
}

// wait is how long a call may wait.
func (c *call) wait() time.Duration {
	if c.Mode == nil || *c.Mode != "wait" || c.MaxMS == nil {
		return 0
	}
	return time.Duration(min(max(0, *c.MaxMS), 1<<40)) * time.Millisecond
}

func bytesOf(words []string) (args [][]byte) {
	for _, word := range words {
		args = append(args, []byte(word))
	}
	return args
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
func (f form) appendTaken(b []byte, t *resp.Taken) []byte {
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
func (f form) appendEach(b []byte, t *resp.Taken) []byte {
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
