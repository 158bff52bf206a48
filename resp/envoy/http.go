package envoy

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
	"celld/resp/metrics"
	"celld/resp/web/guard"
)

// The bounds of a request by HTTP, beside those of a message.
const (
	requestTime = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 12 << 10 // net/http adds 4 KB
)

// newHTTP makes the server of /json and /healthcheck.
func newHTTP(d *port) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/json", d.guarded(d.options.HTTPBind, d.json))
	mux.HandleFunc("/healthcheck", d.healthcheck)
	return d.serverOf(mux)
}

// newMetrics makes the server of metrics. They have no keys, but values where a limit has value_to_metric.
func newMetrics(d *port) *http.Server {
	return d.serverOf(d.guarded(d.options.MetricsBind, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(metrics.AppendText(nil, d.server.Metrics()))
	}))
}

// serverOf makes a server of HTTP.
func (d *port) serverOf(answer http.Handler) *http.Server {
	return &http.Server{
		Handler: d.survive(answer), ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// survive answers with an error where a handler panics.
func (d *port) survive(answer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				d.server.Door.Panic(cause, "HTTP request of Envoy's rate limit service")
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		guard.Chunked(w, r)
		answer.ServeHTTP(w, r)
	})
}

// guarded serves requests that no page of a web site has made its browser send to an address.
func (d *port) guarded(bind string, answer http.HandlerFunc) http.HandlerFunc {
	g := guard.Guard{AnyName: !guard.LoopbackOnly(bind)}
	return func(w http.ResponseWriter, r *http.Request) {
		if why := g.Program(r); why != "" {
			d.server.Door.WarnRefused(r.RemoteAddr, why)
			http.Error(w, why, http.StatusForbidden)
			return
		}
		answer(w, r)
	}
}

// json answers a RateLimitRequest in protobuf's JSON: 200 if the call passes, 429 if not, and else an error as text.
func (d *port) json(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, grpc.MaxMessage))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		http.Error(w, fmt.Sprintf("a request has at most %d bytes", grpc.MaxMessage), http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "the request ends too early", http.StatusBadRequest)
		return
	}
	q, err := message.UnmarshalJSON(body)
	if err != nil {
		d.stats.serviceErrors.Add(1)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := d.ask(q)
	if err != nil {
		failed := grpc.ErrorOf(err)
		http.Error(w, failed.Text, httpStatus(failed.Code))
		return
	}
	text, err := answer.MarshalJSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.Code == message.Over {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(append(text, '\n'))
}

func httpStatus(code grpc.Code) int {
	if code == grpc.InvalidArgument {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

// healthcheck answers OK, or says why not.
func (d *port) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if err := d.unwell(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "OK")
}
