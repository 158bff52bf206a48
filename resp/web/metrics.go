package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"celld/resp"
	"celld/resp/metrics"
	"celld/resp/web/answers"
)

// scrapes are the answers to /metrics at once; more get 503.
const scrapes = 4

// metricsPage is /metrics in Prometheus's text format (https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4).
// It reads the server's counters when it is asked. They are plain counters of the event loops, so a decision costs the same whether
// somebody scrapes or not.
type metricsPage struct {
	server *resp.Server
	places chan struct{} // one for each answer under way

	mu       sync.Mutex
	requests map[request]int64
}

// request is a page that was asked for, and the status of the answer.
type request struct {
	page   string
	status int
}

func newMetricsPage(server *resp.Server) *metricsPage {
	return &metricsPage{server: server, places: make(chan struct{}, scrapes), requests: map[request]int64{}}
}

func (p *metricsPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		answers.Fail(w, http.StatusServiceUnavailable, "too many scrapes at once: at most "+strconv.Itoa(scrapes))
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(metrics.AppendText(nil, p.server.Metrics(p.declare)))
}

// count counts an answer of a page.
func (p *metricsPage) count(page string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[request{page, status}]++
}

// declare declares the counters of requests.
func (p *metricsPage) declare(l *metrics.List) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := slices.SortedFunc(maps.Keys(p.requests), func(a, b request) int {
		return cmp.Or(strings.Compare(a.page, b.page), cmp.Compare(a.status, b.status))
	})
	for _, r := range asked {
		l.Counter(metrics.Metric{Name: "celld_http_requests_total", Help: "Requests to the HTTP port.",
			Labels: []string{"code", strconv.Itoa(r.status), "page", r.page}, Value: p.requests[r]})
	}
}

// counted is an answer whose status is counted.
type counted struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}
