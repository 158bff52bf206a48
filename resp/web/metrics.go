package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"celld/resp"
)

// collector reads the server's counters when it is asked. They are plain counters of the event loops, so that a decision costs the same
// whether somebody scrapes or not.
type collector struct{ server *resp.Server }

// Describe tells nothing: which metrics there are depends on what has happened.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect is called on a goroutine of the registry's, where a panic would end the process.
func (c collector) Collect(out chan<- prometheus.Metric) {
	defer func() {
		if cause := recover(); cause != nil {
			c.server.Panicked(cause, "metrics")
			out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errMetrics), errMetrics)
		}
	}()
	for _, m := range c.server.Metrics() {
		var names, values []string
		for i := 0; i < len(m.Labels); i += 2 {
			names, values = append(names, m.Labels[i]), append(values, m.Labels[i+1])
		}
		desc := prometheus.NewDesc(m.Name, m.Help, names, nil)
		kind := prometheus.GaugeValue
		if m.Total {
			kind = prometheus.CounterValue
		}
		if m.Histogram == nil {
			out <- prometheus.MustNewConstMetric(desc, kind, m.Value, values...)
			continue
		}
		h := m.Histogram
		below := make(map[float64]uint64, len(h.MostNS))
		for i, most := range h.MostNS {
			below[float64(most)/1e9] = h.Below[i]
		}
		out <- prometheus.MustNewConstHistogram(desc, h.Count, float64(h.SumNS)/1e9, below, values...)
	}
}

var errMetrics = errors.New("internal error")

// scrapes are the answers to /metrics at once; more get 503.
const scrapes = 4

// metricsPage returns the handler of /metrics, and the counter of requests that it shows.
func metricsPage(server *resp.Server) (http.Handler, *prometheus.CounterVec) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "celld_http_requests_total", Help: "Requests to the HTTP port."}, []string{"page", "code"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{server}, requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: requestTime / 2}), requests
}

// counted is an answer whose status is counted.
type counted struct {
	http.ResponseWriter
	status int
}

func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// count counts an answer of a page.
func (s *site) count(page string, c *counted) {
	s.requests.WithLabelValues(page, strconv.Itoa(max(c.status, http.StatusOK))).Inc()
}
