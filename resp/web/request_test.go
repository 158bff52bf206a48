package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/persistence"
	"celld/resp"
	"celld/resp/clock"
	"celld/resp/config"
	"celld/resp/web/answers"
	"celld/store/memory"
	"celld/store/policy"
)

var withToken = Options{Token: "secret", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}

// newTestSite returns a site with the policy api.
func newTestSite(t testing.TB, h Options) *site {
	return newTestSiteThat(t, h, slog.New(slog.DiscardHandler))
}

// newTestSiteThat makes a site, for the users of a file where one is given.
func newTestSiteThat(t testing.TB, h Options, logs *slog.Logger, users ...string) *site {
	t.Helper()
	cfg, clock := config.New(), clock.New()
	if users != nil {
		file := filepath.Join(t.TempDir(), "users.acl")
		if err := errors.Join(os.WriteFile(file, []byte(strings.Join(users, "\n")), 0o600), cfg.ACLFile.Set(file)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := resp.ReadFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	keys := memory.New(memory.Options{MaxKeys: 1000, Now: clock.NowNS})
	limit, err := cell.ParseLimit("2/1h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.SetPolicy("api", []cell.Limit{limit}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	disk := cfg.Persistence()
	disk.Clock, disk.Log = clock.NowNS, slog.New(slog.DiscardHandler)
	server := resp.NewServer(resp.Options{
		Config: cfg, Files: files, Store: keys, Log: logs, Clock: clock.NowNS, ReadClocks: clock.Read,
		Persistence: persistence.New(keys, disk),
	})
	return newSite(server, h)
}

// The fuzz target's site decides.
func TestSite(t *testing.T) {
	s := newTestSite(t, withToken)
	for _, want := range []int{200, 200, 429} {
		r := httptest.NewRequest("GET", "/check/api/by/x-a", nil)
		r.Header = http.Header{"X-A": {"alice"}, "Authorization": {"Bearer secret"}}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%d %q, want %d", w.Code, w.Body, want)
		}
	}
}

// Whatever a request has for path, headers and Authorization, it gets one of a few answers, and none but health without the token. An error
// is one line of JSON.
func FuzzRequest(f *testing.F) {
	s := newTestSite(f, withToken)
	for _, path := range []string{
		"/", "/stats.json", "/metrics", "/livez", "/readyz", "/check/api/by/x-a", "/check/api/deny/403/x/by/client-address/word:a%2Fb/x-a",
		"/check/none/by/host", "/check//by/x", "/%zz", "//livez", "/debug/pprof/heap", "*", "http://h/livez",
	} {
		f.Add("GET", path, "X-Forwarded-For: 192.0.2.1\r\nX-A: alice", "Bearer secret")
		f.Add("POST", path, "X-A: a\r\nX-A: b\r\nContent-Length: 3", "Basic OnNlY3JldA==")
		f.Add("GET", path, "X-A: alice", "Bearer wrong")
		f.Add("HEAD", path, "Host: h\r\nX-A:\xff", "Basic OnNlY3JldA")
	}
	statuses := []int{200, 400, 401, 403, 404, 405, 429}
	f.Fuzz(func(t *testing.T, method, path, headers, authorization string) {
		text := method + " " + path + " HTTP/1.1\r\nHost: h\r\n" + headers + "\r\nAuthorization: " + authorization + "\r\n\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return // net/http answers
		}
		r.RemoteAddr = "10.0.0.1:1"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		health := r.URL.EscapedPath() == "/livez" || r.URL.EscapedPath() == "/readyz"
		if !slices.Contains(statuses, w.Code) {
			t.Fatalf("%q: %d %q", text, w.Code, w.Body)
		}
		if !health && w.Code != 401 && !s.admitted(r) || health && w.Code == 401 {
			t.Errorf("%q: %d without the token", text, w.Code)
		}
		if w.Code != 401 && !health {
			_, password, _ := r.BasicAuth()
			bearer := strings.Fields(r.Header.Get("Authorization"))
			if password != "secret" && (len(bearer) != 2 || !strings.EqualFold(bearer[0], "bearer") || bearer[1] != "secret") {
				t.Errorf("%q is admitted", authorization)
			}
		}
		if w.Header().Get("Content-Type") == "application/problem+json" {
			var p answers.Problem
			body := w.Body.String()
			err := json.Unmarshal([]byte(body), &p)
			if err != nil || p.Status != w.Code || strings.Count(body, "\n") != 1 || strings.Contains(body, "secret") {
				t.Errorf("%q: %d %q, %v", text, w.Code, body, err)
			}
		} else if w.Code != 200 {
			t.Errorf("%q: %d %q", text, w.Code, w.Body)
		}
		for name, values := range w.Header() {
			if strings.ContainsAny(name+strings.Join(values, ""), "\r\n") {
				t.Errorf("%q: %s: %q", text, name, values)
			}
		}
	})
}
