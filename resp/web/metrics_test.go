package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
