package web

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// ask sends what stands on the wire, and returns the answer.
func ask(t *testing.T, s *site, wire string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(wire, "\n", "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%q: %v", wire, err)
	}
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const (
	here    = "Host: 127.0.0.1:8080"
	rebound = "Host: evil.example:8080"
	image   = here + "\nAccept: image/*\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image"
	fetch   = here + "\nAccept: */*\nOrigin: https://evil.example\nSec-Fetch-Site: cross-site"
	user    = "\nAccept: */*\nUser-Agent: Mozilla/5.0\nReferer: https://app.example/\nCookie: a=b\nOrigin: https://app.example\nSec-Fetch-Site: same-site"
)

// The page of another site takes nothing from a limit. A proxy that passes on what its client has sent does.
func TestWhoseChecks(t *testing.T) {
	for name, test := range map[string]struct {
		wire   string
		status int
	}{
		"a tool":                         {"GET /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nUser-Agent: curl", 200},
		"a tool, by localhost":           {"POST /check/api/by/word:x HTTP/1.1\nHost: localhost:8080\nAccept: */*", 200},
		"typed":                          {"GET /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nSec-Fetch-Site: none", 200},
		"its own page":                   {"POST /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nOrigin: http://127.0.0.1:8080\nSec-Fetch-Site: same-origin", 200},
		"an image":                       {"GET /check/api/by/word:x HTTP/1.1\n" + image, 403},
		"a link":                         {"GET /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nSec-Fetch-Site: cross-site\nSec-Fetch-Dest: document", 403},
		"another port":                   {"GET /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nSec-Fetch-Site: same-site", 403},
		"a fetch":                        {"GET /check/api/by/word:x HTTP/1.1\n" + fetch, 403},
		"a form, in an old browser":      {"POST /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nOrigin: https://evil.example", 403},
		"a form of no site":              {"POST /check/api/by/word:x HTTP/1.1\n" + here + "\nAccept: */*\nOrigin: null", 403},
		"a preflight":                    {"OPTIONS /check/api/by/x-user HTTP/1.1\n" + fetch + "\nAccess-Control-Request-Method: GET\nAccess-Control-Request-Headers: x-user", 403},
		"a fetch, by what browsers send": {"GET /check/api/by/user-agent/cookie/accept HTTP/1.1\n" + fetch + "\nUser-Agent: Mozilla\nCookie: a=b", 403},
		"a fetch, by what marks it":      {"GET /check/api/by/sec-fetch-site HTTP/1.1\n" + fetch, 403},
		"a fetch that names no user":     {"GET /check/api/by/x-user HTTP/1.1\n" + fetch, 403},
		"rebound":                        {"GET /check/api/by/word:x HTTP/1.1\n" + rebound + "\nAccept: */*", 403},
		"rebound, like a proxy":          {"GET /check/api/by/x-real-ip HTTP/1.1\n" + rebound + "\nAccept: */*\nX-Real-IP: 192.0.2.1\nX-Forwarded-For: 192.0.2.1\nForwarded: for=192.0.2.1", 403},
		"rebound, not by a browser":      {"GET /check/api/by/word:x HTTP/1.1\n" + rebound, 403},

		"nginx that passes all on":            {"GET /check/api/by/authorization HTTP/1.0\n" + here + user + "\nAuthorization: Bearer x", 200},
		"nginx with a name for it":            {"GET /check/api/by/x-real-ip HTTP/1.1\nHost: celld\nX-Real-IP: 192.0.2.1", 200},
		"nginx, X-Real-IP, by a word":         {"GET /check/api/by/word:x HTTP/1.1\nHost: celld" + user + "\nX-Real-IP: 192.0.2.1", 200},
		"X-Forwarded-For, by a word":          {"GET /check/api/by/word:x HTTP/1.1\n" + here + user + "\nX-Forwarded-For: 192.0.2.1", 200},
		"Forwarded, by a word":                {"GET /check/api/by/word:x HTTP/1.1\n" + here + user + "\nForwarded: for=192.0.2.1", 200},
		"Traefik, all on":                     {"GET /check/api/by/client-address HTTP/1.1\n" + here + user + "\nX-Forwarded-For: 192.0.2.1\nX-Forwarded-Host: app.example", 200},
		"Envoy, Caddy: only the Host":         {"OPTIONS /check/api/by/x-real-ip HTTP/1.1\nHost: app.example\nX-Real-IP: 192.0.2.1", 200},
		"Caddy that passes all on":            {"GET /check/api/by/word:x HTTP/1.1\nHost: app.example" + user + "\nVia: 1.1 Caddy", 200},
		"a user's preflight, by Caddy":        {"OPTIONS /check/api/by/word:x HTTP/1.1\nHost: app.example" + user + "\nAccess-Control-Request-Method: PUT\nVia: 1.1 Caddy", 200},
		"the Host passed on, and all headers": {"GET /check/api/by/x-real-ip HTTP/1.1\nHost: app.example" + user + "\nX-Real-IP: 192.0.2.1", 403},
	} {
		s := newTestSite(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		w := ask(t, s, test.wire)
		if w.Code != test.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if asked := s.server.Overview().Allowed; asked != map[int]int64{200: 1, 403: 0}[w.Code] {
			t.Errorf("%s: %d and %d calls allowed", name, w.Code, asked)
		}
	}
}

// Pages for people and tools are served by addresses only, to links, and to no other request of another site's page.
func TestWhoReads(t *testing.T) {
	s := newTestSite(t, Options{Pprof: true})
	for _, path := range []string{"/", "/stats.json", "/metrics", "/debug/pprof/"} {
		for wire, want := range map[string]int{
			here: 200, here + "\nAccept: */*": 200, rebound: 403, "Host: celld:8080": 403,
			rebound + "\nVia: 1.1 x\nX-Forwarded-For: 192.0.2.1": 403, image: 403, fetch: 403,
			here + "\nSec-Fetch-Site: same-site\nSec-Fetch-Dest: iframe":          403,
			here + "\nSec-Fetch-Site: same-origin\nOrigin: http://127.0.0.1:8080": 200,
			here + "\nSec-Fetch-Site: cross-site\nSec-Fetch-Dest: document":       200,
			rebound + "\nSec-Fetch-Site: cross-site\nSec-Fetch-Dest: document":    403,
		} {
			if w := ask(t, s, "GET "+path+" HTTP/1.1\n"+wire); w.Code != want {
				t.Errorf("%s %q: %d %.80s", path, wire, w.Code, w.Body)
			}
		}
		if w := ask(t, s, "OPTIONS "+path+" HTTP/1.1\n"+fetch+"\nAccess-Control-Request-Method: GET"); w.Code != 405 {
			t.Errorf("a preflight for %s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if w := ask(t, s, "GET "+path+" HTTP/1.1\n"+rebound+"\n"+strings.TrimPrefix(fetch, here+"\n")); w.Code == 403 {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// With a token, any name will do. A page can make a browser send the password that it knows, and no Bearer token.
func TestPagesAndTheToken(t *testing.T) {
	s := newTestSite(t, withToken)
	const bearer, basic = "\nAuthorization: Bearer secret", "\nAuthorization: Basic OnNlY3JldA=="
	for _, path := range []string{"/check/api/by/word:x", "/metrics"} {
		for wire, want := range map[string]int{
			rebound + bearer: 200, rebound + basic: 200, fetch + bearer: 200, fetch + basic: 403, image + basic: 403,
			fetch: 401, rebound: 401,
		} {
			if w := ask(t, s, "GET "+path+" HTTP/1.1\n"+wire); w.Code != want && !(w.Code == 429 && want == 200) {
				t.Errorf("%s %q: %d %.80s", path, wire, w.Code, w.Body)
			}
		}
	}
}
