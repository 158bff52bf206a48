package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"celld/resp/door"
	"celld/resp/web/answers"
)

// mostBody is the longest body, in bytes.
const mostBody = 64 << 10

// mostCalls is how many calls a request may have: those of a batch.
const mostCalls = 128

// API answers requests.
type API struct {
	Door    *door.Door
	Trusted bool // who asks has shown a token, and may do everything
}

// Caller is who asks.
func (a API) Caller(r *http.Request) door.Caller {
	return door.Caller{Addr: r.RemoteAddr, Trusted: a.Trusted}
}

// Page finds what answers a path, as it was sent. It returns nil for a path of others.
func (a API) Page(path string) http.HandlerFunc {
	switch path {
	case "/v1/take":
		return post(a.take)
	case "/v1/give":
		return post(a.give)
	case "/v1/release":
		return post(a.release)
	case "/v1/renew":
		return post(a.renew)
	case "/v1/settle":
		return post(a.settle)
	case "/throttle":
		return post(a.throttle)
	case "/v1/openapi.json":
		return answers.Read(describe)
	}
	if strings.HasPrefix(path, showRoot) {
		return answers.Read(a.show)
	}
	return nil
}

// post answers requests with a body of JSON, which is in the exchange.
func post(answer func(w http.ResponseWriter, r *http.Request, x *exchange)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			answers.Fail(w, http.StatusMethodNotAllowed, "only POST")
			return
		}
		if !isJSON(r.Header.Get("Content-Type")) || r.Header.Get("Content-Encoding") != "" {
			answers.Fail(w, http.StatusUnsupportedMediaType, "expected Content-Type: application/json, without Content-Encoding")
			return
		}
		x := newExchange()
		defer x.end()
		_, err := x.body.ReadFrom(http.MaxBytesReader(w, r.Body, mostBody))
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			answers.Fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a body has at most %d bytes", mostBody))
			return
		} else if err != nil {
			answers.Fail(w, http.StatusBadRequest, "the body ends too early")
			return
		}
		answer(w, r, x)
	}
}

// isJSON reports whether a Content-Type is that of JSON, with parameters or without.
func isJSON(text string) bool {
	if text == jsonType[0] {
		return true
	}
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && kind == jsonType[0]
}

// exchange is what a request needs. They are used again: so a take allocates 1.8 KB and not 4.5.
type exchange struct {
	body    bytes.Buffer
	answer  []byte
	header  http.Header // of the answer
	denied  bool        // by problem
	problem answers.Problem
}

var exchanges = sync.Pool{New: func() any { return &exchange{} }}

func newExchange() *exchange { return exchanges.Get().(*exchange) }

// end lets others use it. That of a large answer is dropped.
func (x *exchange) end() {
	if max(x.body.Cap(), cap(x.answer)) > mostBody {
		return
	}
	x.body.Reset()
	*x = exchange{body: x.body, answer: x.answer[:0]}
	exchanges.Put(x)
}

// bound gives an answer as long as it may wait, and the usual time.
func bound(w http.ResponseWriter, wait time.Duration) {
	if wait > 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + answerTime))
	}
}

// answerTime is how long an answer may take beyond a wait.
const answerTime = 10 * time.Second

// failed answers with the error of a call.
func failed(w http.ResponseWriter, err error) { problemOf(err).Write(w) }

func problemOf(err error) answers.Problem {
	if refused := (*door.CallError)(nil); errors.As(err, &refused) {
		text := strings.TrimPrefix(refused.Text, "ERR ")
		if strings.HasPrefix(text, "internal error") {
			return answers.Failed(http.StatusInternalServerError, "internal error")
		}
		return answers.Failed(answers.Status(refused, http.StatusBadRequest), text)
	}
	if errors.Is(err, context.Canceled) { // nobody reads it
		return answers.Failed(http.StatusServiceUnavailable, "the client has gone")
	}
	return answers.Failed(http.StatusInternalServerError, err.Error())
}

// writeJSON answers with a line of JSON.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"], h["X-Content-Type-Options"] = jsonType, noSniff
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// Values of headers, so that no answer makes them anew.
var jsonType, noSniff = []string{"application/json"}, []string{"nosniff"}
