package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"celld/resp"
)

// Lines of the text format stand in groups of one name, with help and kind first. Labels are sorted, and what is special is escaped.
func TestAppendMetrics(t *testing.T) {
	got := string(appendMetrics([]byte("x\n"), []resp.Metric{
		{Name: "b_total", Help: "B.", Total: true, Labels: []string{"y", "1", "x", "a\"\\\n{ü"}, Value: 10_000_000},
		{Name: "a", Help: "One\\two\nthree.", Value: 0.125},
		{Name: "h", Help: "H.", Labels: []string{"z", ""}, Histogram: &resp.Histogram{MostNS: []int64{1_024, 2_000_000_000}, Below: []uint64{1, 3}, Count: 4, SumNS: 2_500_000_000}},
		{Name: "b_total", Help: "B.", Total: true, Labels: []string{"y", "2", "x", ""}, Value: 1 << 60},
		{Name: "h", Help: "H.", Labels: []string{"z", "0"}, Histogram: &resp.Histogram{}},
	}))
	want := strings.Join([]string{
		`x`,
		`# HELP a One\\two\nthree.`, `# TYPE a gauge`, `a 0.125`,
		`# HELP b_total B.`, `# TYPE b_total counter`, `b_total{x="a\"\\\n{ü",y="1"} 10000000`, `b_total{x="",y="2"} 1.152921504606847e+18`,
		`# HELP h H.`, `# TYPE h histogram`, `h_bucket{le="1.024e-06",z=""} 1`, `h_bucket{le="2",z=""} 3`, `h_bucket{le="+Inf",z=""} 4`, `h_sum{z=""} 2.5`, `h_count{z=""} 4`,
		`h_bucket{le="+Inf",z="0"} 0`, `h_sum{z="0"} 0`, `h_count{z="0"} 0`, "",
	}, "\n")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Answers are counted by page and status. While four are under way, the next is refused, and the place of one that has ended is free.
func TestMetricsOfRequests(t *testing.T) {
	s := newTestSite(t, withToken)
	get := func(path string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer secret")
		s.ServeHTTP(w, r)
		return w
	}
	get("/livez")
	get("/nothing")
	get("/livez")
	for range scrapes {
		s.metrics.places <- struct{}{}
	}
	if w := get("/metrics"); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "celld_") {
		t.Errorf("a fifth scrape: %d %s", w.Code, w.Body)
	}
	<-s.metrics.places
	get("/metrics")
	w := get("/metrics")
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%d %s", w.Code, got)
	}
	for _, line := range []string{
		`celld_http_requests_total{code="200",page="livez"} 2`, `celld_http_requests_total{code="404",page="other"} 1`,
		`celld_http_requests_total{code="503",page="metrics"} 1`, `celld_http_requests_total{code="200",page="metrics"} 1`, `celld_keys 0`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("no %s in %s", line, w.Body)
		}
	}
}
