package envoy

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"celld/resp/envoy/domains"
	"celld/resp/metrics"
)

// statistics are those of envoyproxy/ratelimit, under the names that its statsd exporter gives them.
type statistics struct {
	loads                      func() (taken, refused int64) // of the configuration
	serviceErrors, storeErrors atomic.Int64
	shadowed                   atomic.Int64 // calls that pass only as all limits are in shadow mode

	methods [2]methodStats // ShouldRateLimit and Check

	mu      sync.RWMutex
	series  map[domains.Series]*seriesStats
	unknown map[string]*atomic.Int64 // descriptors of a domain that is not configured
}

// mostSeries is how many series there are of limits, with other, and mostUnknown of domains that are not configured. Calls name them, so
// the rest is counted together, as other.
const (
	mostSeries  = 2000
	mostUnknown = 100
	others      = "other"
)

// seriesStats are the hits of a limit.
type seriesStats struct{ total, over, near, within, shadow atomic.Uint64 }

func newStatistics() *statistics {
	st := &statistics{series: map[domains.Series]*seriesStats{}, unknown: map[string]*atomic.Int64{},
		loads: func() (taken, refused int64) { return 0, 0 }}
	st.methods[shouldRateLimit].name, st.methods[check].name = "ShouldRateLimit", "Check"
	return st
}

// count counts the hits of a descriptor. One call's hits may lie on both sides of a bound: then each side counts its own.
func (st *statistics) count(it *asked, nearRatio float32) {
	if it.negative || it.hits == 0 {
		return
	}
	n, hits := st.of(it.Series), uint64(it.hits)
	n.total.Add(hits)
	limit := uint64(it.shown.Requests)
	before, near := it.after-min(it.after, hits), uint64(math.Floor(float64(float32(limit)*nearRatio)))
	if !it.over {
		n.within.Add(hits)
		if it.after > near {
			n.near.Add(min(hits, it.after-near))
		}
		return
	}
	over := min(hits, it.after-min(it.after, limit))
	if n.over.Add(over); it.Shadow {
		n.shadow.Add(over)
	}
	if before < limit {
		n.near.Add(limit - max(near, before))
	}
}

// of are the counters of a series.
func (st *statistics) of(s domains.Series) *seriesStats {
	st.mu.RLock()
	n := st.series[s]
	st.mu.RUnlock()
	if n != nil {
		return n
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if n = st.series[s]; n == nil && len(st.series) >= mostSeries-1 {
		s = domains.Series{Domain: others, Key1: others}
		n = st.series[s]
	}
	if n == nil {
		n = &seriesStats{}
		st.series[s] = n
	}
	return n
}

// unknownDomain counts a descriptor of a domain that is not configured.
func (st *statistics) unknownDomain(domain string) {
	domain = nameOf(domain)
	st.mu.Lock()
	defer st.mu.Unlock()
	n := st.unknown[domain]
	if n == nil && len(st.unknown) >= mostUnknown {
		domain = others
		n = st.unknown[domain]
	}
	if n == nil {
		n = &atomic.Int64{}
		st.unknown[domain] = n
	}
	n.Add(1)
}

// nameOf is a domain as a part of a metric's name.
func nameOf(domain string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, domain[:min(len(domain), 64)])
}

// The methods whose calls are counted.
const (
	shouldRateLimit = iota
	check
)

// methodStats are the calls of a method, and how long they took.
type methodStats struct {
	name   string
	calls  atomic.Int64
	sumNS  atomic.Int64
	counts [len(boundsNS)]atomic.Uint64 // by the first bound that they did not exceed
}

// boundsNS are those of Prometheus's own histograms.
var boundsNS = [...]int64{5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 500e6, 1e9, 2.5e9, 5e9, 10e9}

// done counts a call that began at a time.
func (m *methodStats) done(began time.Time) {
	ns := int64(time.Since(began))
	m.calls.Add(1)
	m.sumNS.Add(ns)
	if at, _ := slices.BinarySearch(boundsNS[:], ns); at < len(boundsNS) {
		m.counts[at].Add(1)
	}
}

func (m *methodStats) histogram() *metrics.Histogram {
	h := &metrics.Histogram{MostNS: boundsNS[:], Below: make([]uint64, len(boundsNS)), SumNS: m.sumNS.Load()}
	sum := uint64(0)
	for i := range m.counts {
		sum += m.counts[i].Load()
		h.Below[i] = sum
	}
	h.Count = max(uint64(m.calls.Load()), sum)
	return h
}

// declare declares all of them.
func (st *statistics) declare(l *metrics.List) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	all := slices.SortedFunc(maps.Keys(st.series), func(a, b domains.Series) int {
		return cmp.Or(strings.Compare(a.Domain, b.Domain), strings.Compare(a.Key1, b.Key1), strings.Compare(a.Key2, b.Key2))
	})
	for _, kind := range []struct {
		name, help string
		of         func(*seriesStats) *atomic.Uint64
	}{
		{"total_hits", "Hits of a limit.", func(n *seriesStats) *atomic.Uint64 { return &n.total }},
		{"over_limit", "Hits over the limit.", func(n *seriesStats) *atomic.Uint64 { return &n.over }},
		{"near_limit", "Hits near the limit: beyond the share of --envoy-near-limit.", func(n *seriesStats) *atomic.Uint64 { return &n.near }},
		{"within_limit", "Hits within the limit.", func(n *seriesStats) *atomic.Uint64 { return &n.within }},
		{"shadow_mode", "Hits over the limit that passed by its shadow_mode.", func(n *seriesStats) *atomic.Uint64 { return &n.shadow }},
	} {
		for _, s := range all {
			labels := []string{"domain", metrics.Printable(s.Domain), "key1", metrics.Printable(s.Key1)}
			if s.Key2 != "" {
				labels = append(labels, "key2", metrics.Printable(s.Key2))
			}
			if n := kind.of(st.series[s]).Load(); n > 0 {
				l.Counter(metrics.Metric{Name: "ratelimit_service_rate_limit_" + kind.name, Help: kind.help, Labels: labels, Value: n})
			}
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(st.unknown)) {
		l.Counter(metrics.Metric{Name: "ratelimit_service_rate_limit_" + domain + "_domain_not_found",
			Help: "Descriptors of a domain that is not configured.", Value: st.unknown[domain].Load()})
	}
	loaded, failed := st.loads()
	const errorName, errorHelp = "ratelimit_service_should_rate_limit_error", "Calls that were answered with an error."
	for _, m := range []metrics.Metric{
		{Name: errorName, Help: errorHelp, Labels: []string{"err_type", "redis_error"}, Value: st.storeErrors.Load()},
		{Name: errorName, Help: errorHelp, Labels: []string{"err_type", "service_error"}, Value: st.serviceErrors.Load()},
		{Name: "ratelimit_service_global_shadow_mode", Help: "Calls that passed by --envoy-shadow.", Value: st.shadowed.Load()},
		{Name: "ratelimit_service_config_load_success", Help: "Configurations that were loaded.", Value: loaded},
		{Name: "ratelimit_service_config_load_error", Help: "Configurations with a mistake.", Value: failed},
	} {
		l.Counter(m)
	}
	for i := range st.methods {
		m := &st.methods[i]
		l.Counter(metrics.Metric{Name: "ratelimit_service_total_requests", Help: "Calls by gRPC.",
			Labels: []string{"grpc_method", m.name}, Value: m.calls.Load()})
	}
	for i := range st.methods {
		m := &st.methods[i]
		l.Histogram(metrics.Metric{Name: "ratelimit_service_response_time_seconds", Help: "How long calls by gRPC took.",
			Labels: []string{"grpc_method", m.name}, Value: m.histogram()})
	}
}
