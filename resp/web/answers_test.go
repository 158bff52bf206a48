package web

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"celld/resp"
	"celld/resp/door"
)

// answer is a whole answer: its status, its headers sorted, and its body.
func answer(w *httptest.ResponseRecorder) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		lines = append(lines, name+": "+strings.Join(w.Header()[name], ", "))
	}
	return fmt.Sprintf("%d\n%s\n\n%s", w.Code, strings.Join(lines, "\n"), w.Body)
}

const (
	text      = "Cache-Control: no-store\nContent-Type: text/plain; charset=utf-8\nX-Content-Type-Options: nosniff\n\n"
	asProblem = "Content-Type: application/problem+json\nX-Content-Type-Options: nosniff\n\n"
)

// Whole answers are as docs/reference/http.md says.
func TestAnswers(t *testing.T) { synctest.Test(t, testAnswers) }

func testAnswers(t *testing.T) {
	s := newTestSite(t, Options{})
	for _, test := range []struct{ request, want string }{
		{"GET /livez", "200\n" + text + "ok\n"},
		{"HEAD /readyz", "200\n" + text + "ok\n"},
		{"POST /livez", "405\nAllow: GET, HEAD\nCache-Control: no-store\n" + asProblem + `{"title":"Method Not Allowed","status":405,"detail":"only GET and HEAD"}` + "\n"},
		{"GET /none", "404\nCache-Control: no-store\n" + asProblem + `{"title":"Not Found","status":404,"detail":"no such page"}` + "\n"},
		{"GET /debug/pprof/", "404\nCache-Control: no-store\n" + asProblem + `{"title":"Not Found","status":404,"detail":"no such page"}` + "\n"},
		{"GET /check/api", "404\nCache-Control: no-store\n" + asProblem + `{"title":"Not Found","status":404,"detail":"expected /check/<policy>[/<policy>…][/cost/<n>[/of/<name>]…][/deny/403][/x]/by/<source>[/<source>…], or /look/… or /give/…"}` + "\n"},
		{"GET /check/none/by/word:x", "404\nCache-Control: no-store\n" + asProblem + `{"title":"Not Found","status":404,"detail":"NOPOLICY no such policy 'none'"}` + "\n"},
		{"GET /check/api/by/x-a", "400\nCache-Control: no-store\n" + asProblem + `{"title":"Bad Request","status":400,"detail":"the header X-A is missing"}` + "\n"},
		{"GET /check/api/by/host", "200\nCache-Control: no-store\nContent-Type: text/plain; charset=utf-8\nRateLimit: \"api\";r=1;t=1800\nRateLimit-Policy: \"api\";q=2;w=3600\nX-Content-Type-Options: nosniff\n\nok\n"},
		{"GET /check/api/x/by/host", "200\nCache-Control: no-store\nContent-Type: text/plain; charset=utf-8\nRateLimit: \"api\";r=0;t=3600\nRateLimit-Policy: \"api\";q=2;w=3600\n" +
			"X-Content-Type-Options: nosniff\nX-RateLimit-Limit: 2\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 3600\n\nok\n"},
		{"GET /check/api/deny/403/by/host", "403\nCache-Control: no-store\nContent-Type: application/problem+json\nRateLimit: \"api\";r=0;t=1800\nRateLimit-Policy: \"api\";q=2;w=3600\nRetry-After: 1800\nX-Content-Type-Options: nosniff\n\n" +
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many requests","status":403,"detail":"retry in 1800 s","violated-policies":["api"]}` + "\n"},
	} {
		if got := answer(ask(t, s, test.request+" HTTP/1.1\n"+here)); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.request, got, test.want)
		}
	}
	got := answer(ask(t, newTestSite(t, withToken), "GET /none HTTP/1.1\n"+here))
	const detail = "the token of --http-token-file is needed, as Bearer or as the password"
	if !strings.Contains(got, "\nWww-Authenticate: Basic realm=\"celld\", charset=\"UTF-8\"\n") ||
		!strings.HasSuffix(got, `{"title":"Unauthorized","status":401,"detail":"`+detail+"\"}\n") {
		t.Error(got)
	}
	got = answer(ask(t, s, "GET / HTTP/1.1\n"+here))
	const rest = "\nContent-Type: text/html; charset=utf-8\nCross-Origin-Resource-Policy: same-origin\nReferrer-Policy: no-referrer\n" +
		"X-Content-Type-Options: nosniff\n\n<!doctype html>"
	if !strings.HasPrefix(got, "200\nCache-Control: no-store\nContent-Security-Policy: default-src 'none'; script-src 'sha256-") ||
		!strings.Contains(got, rest) {
		t.Errorf("%.900s", got)
	}
	if got := answer(ask(t, s, "GET /stats.json HTTP/1.1\n"+here)); !strings.HasPrefix(got, "200\nCache-Control: no-store\nContent-Type: application/json\nCross-Origin-Resource-Policy: same-origin\nX-Content-Type-Options: nosniff\n\n{") {
		t.Errorf("%.500s", got)
	}
}

// Where two may see two ends of a request, its connection does not go on.
func TestChunkedRequests(t *testing.T) {
	s := newTestSite(t, Options{})
	const chunked = "POST /v1/take HTTP/1.1\n" + here + "\nTransfer-Encoding: chunked"
	for wire, want := range map[string]string{
		chunked + "\nContent-Length: 5\n\n0": "close", chunked + "\n\n0": "close",
		"POST /v1/take HTTP/1.1\n" + here + "\nContent-Length: 0": "", "GET /livez HTTP/1.1\n" + here: "",
	} {
		if got := ask(t, s, wire).Header().Get("Connection"); got != want {
			t.Errorf("%q: Connection: %q, want %q", wire, got, want)
		}
	}
}

// A server that decides nothing is not ready, and a check is an outage then, with the word that says why.
func TestWhatIsNotDecided(t *testing.T) {
	for word, want := range map[string]int{
		"NOPOLICY": 404, "STOREDOWN": 503, "LOADING": 503, "BUSY": 503, "MISCONF": 503, "OOM": 503, "WRONGTYPE": 500, "ERR": 500,
	} {
		w := httptest.NewRecorder()
		failCheck(w, &door.CallError{Text: word + " and why"})
		if w.Code != want || !strings.Contains(w.Body.String(), word+" and why") {
			t.Errorf("%s: %s", word, answer(w))
		}
	}
	w := httptest.NewRecorder()
	if failCheck(w, fmt.Errorf("no reply")); w.Code != 500 {
		t.Error(answer(w))
	}
}

// The token is one, as Bearer or as a password; and everything else is refused.
func TestTheToken(t *testing.T) {
	s := newTestSite(t, withToken)
	for authorization, want := range map[string]int{
		"Bearer secret": 200, "bearer  secret": 200, "Basic OnNlY3JldA==": 200, "Basic YW55Ym9keTpzZWNyZXQ=": 200,
		"": 401, "Bearer": 401, "Bearer other": 401, "Bearer secret2": 401, "Basic OnNlY3JldDI=": 401, "Basic Og==": 401,
		"Basic c2VjcmV0Og==": 401, "Basic x": 401, "secret": 401, "Digest secret": 401,
	} {
		if w := ask(t, s, "GET /metrics HTTP/1.1\n"+here+"\nAuthorization: "+authorization); w.Code != want {
			t.Errorf("%q: %d", authorization, w.Code)
		}
	}
}

// A request without a token is the user default, as by RESP: it must authenticate, and has that user's rights on commands and keys. The
// token may do everything.
func TestWhoMayDoWhat(t *testing.T) {
	const json = "\nContent-Type: application/json\nContent-Length: "
	take := func(key string) string {
		body := `{"key":"` + key + `","limits":["5/1h"]}`
		return "POST /v1/take HTTP/1.1\n" + here + json + fmt.Sprint(len(body)) + "\n\n" + body
	}
	requests := map[string]string{
		"check":   "GET /check/api/by/word:other HTTP/1.1\n" + here,
		"take":    take("other"),
		"own":     take("app:1"),
		"calls":   "POST /v1/take HTTP/1.1\n" + here + json + "50\n\n" + `{"calls":[{"key":"other","limits":["5/1h"]}]}     `,
		"show":    "GET /v1/show/other HTTP/1.1\n" + here,
		"stats":   "GET /stats.json HTTP/1.1\n" + here,
		"metrics": "GET /metrics HTTP/1.1\n" + here,
	}
	all := func(status int) map[string]int {
		return map[string]int{"check": status, "take": status, "own": status, "calls": status, "show": status, "stats": status,
			"metrics": 200}
	}
	for rules, want := range map[string]map[string]int{
		"":                               all(200),
		"resetpass >secret":              all(401),
		"off":                            all(401),
		"-cl.take -cl.top":               {"check": 403, "take": 403, "own": 403, "calls": 403, "show": 200, "stats": 403, "metrics": 200},
		"resetkeys ~app:*":               {"check": 403, "take": 403, "own": 200, "calls": 403, "show": 403, "stats": 200, "metrics": 200},
		"-@all +ping +cl.show resetkeys": {"check": 403, "take": 403, "own": 403, "calls": 403, "show": 403, "stats": 403, "metrics": 200},
	} {
		for _, h := range []Options{{}, withToken} {
			s := newTestSiteThat(t, h, slog.New(slog.DiscardHandler), "user default on nopass ~* +@all "+rules)
			for name, request := range requests {
				status, head := want[name], request
				if h.Token != "" {
					status, head = 200, strings.Replace(request, here, here+"\nAuthorization: Bearer secret", 1)
				}
				w := ask(t, s, head)
				if strings.Contains(w.Body.String(), `{"results":[{"status":403,`) {
					w.Code = 403 // of the one call
				}
				if w.Code != status || status == 401 && (!strings.Contains(w.Body.String(), "set --http-token-file") ||
					w.Header().Get("Www-Authenticate") == "") {
					t.Errorf("%q, %s, token %q: %s; want %d", rules, name, h.Token, answer(w), status)
				}
			}
		}
	}
}

// A header that is there twice may be a client's and a proxy's: neither is believed.
func TestDoubledHeaders(t *testing.T) {
	s := newTestSite(t, Options{})
	for headers, want := range map[string]string{
		"X-A: a\nX-A: b": "the request has the header X-A 2 times",
		"X-A: a\nx-a:":   "the request has the header X-A 2 times",
		"X-A:":           "the header X-A is missing",
		"X-B: a":         "the header X-A is missing",
	} {
		if w := ask(t, s, "GET /check/api/by/x-a HTTP/1.1\n"+here+"\n"+headers); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %s", headers, answer(w))
		}
	}
	if w := ask(t, s, "GET /check/api/by/host HTTP/1.0\nX-A: a"); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "the header Host is missing") {
		t.Error(answer(w))
	}
	r := httptest.NewRequest("GET", "/check/api/by/client-address", nil)
	r.RemoteAddr, r.Host = "@", "127.0.0.1"
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 400 || !strings.Contains(w.Body.String(), "the connection has no address") {
		t.Error(answer(w))
	}
	for path, want := range map[string]int{
		"word:%20": 200, "word:%7e": 200, "word:%7f": 404, "word:%1f": 404, "x0": 400, "x9": 400, "x%2f": 404, "x:": 404, "_-": 400,
	} {
		if w := ask(t, s, "GET /check/api/by/"+path+" HTTP/1.1\n"+here); w.Code != want {
			t.Errorf("%s: %s", path, answer(w))
		}
	}
}

// /metrics has what the server counts, as seconds and by kind, requests by page, and Go's own.
func TestMetricsPage(t *testing.T) {
	s := newTestSite(t, Options{Pprof: true})
	for _, wire := range []string{
		"GET /", "GET /stats.json", "GET /livez", "GET /readyz", "GET /check/api/by/word:x", "GET /check/x", "GET /debug/pprof/",
		"GET /none", "GET /none", "POST /metrics",
	} {
		ask(t, s, wire+" HTTP/1.1\n"+here)
	}
	if _, err := s.server.Door.TakeOne(t.Context(), door.Caller{Trusted: true}, door.Ask{Key: "k", Limits: []string{"@api"}}); err != nil {
		t.Fatal(err)
	}
	body := ask(t, s, "GET /metrics HTTP/1.1\n"+here).Body.String()
	for _, want := range []string{
		`celld_http_requests_total{code="200",page="page"} 1`, `celld_http_requests_total{code="200",page="stats"} 1`,
		`celld_http_requests_total{code="200",page="livez"} 1`, `celld_http_requests_total{code="200",page="readyz"} 1`,
		`celld_http_requests_total{code="200",page="check"} 1`, `celld_http_requests_total{code="404",page="check"} 1`,
		`celld_http_requests_total{code="200",page="pprof"} 1`, `celld_http_requests_total{code="404",page="other"} 2`,
		`celld_http_requests_total{code="405",page="metrics"} 1`, "# TYPE celld_keys gauge",
		"# TYPE celld_commands_processed_total counter", "# TYPE go_goroutines gauge", "# TYPE process_open_fds gauge",
		`celld_command_duration_seconds_bucket{command="cl.take",le="1.024e-06"} `,
		`celld_command_duration_seconds_count{command="cl.take"} `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	var sum float64
	_, rest, _ := strings.Cut(body, `celld_command_duration_seconds_sum{command="cl.take"} `)
	if _, err := fmt.Sscan(rest, &sum); err != nil || sum > 3600 {
		t.Errorf("calls took %v s, %v", sum, err)
	}
}

// Only the first status counts, as only that is sent.
func TestCounted(t *testing.T) {
	w := &counted{ResponseWriter: httptest.NewRecorder()}
	w.WriteHeader(404)
	w.WriteHeader(200)
	if w.status != 404 {
		t.Error(w.status)
	}
}

// A fault costs its request, which is answered.
func TestAPanic(t *testing.T) {
	s := newTestSite(t, Options{})
	s.readings.take = func() *resp.Overview { panic("at the disco") }
	if got := answer(ask(t, s, "GET /stats.json HTTP/1.1\n"+here)); got != "500\nCache-Control: no-store\nContent-Type: application/problem+json\nCross-Origin-Resource-Policy: same-origin\nX-Content-Type-Options: nosniff\n\n"+`{"title":"Internal Server Error","status":500,"detail":"internal error"}`+"\n" {
		t.Error(got)
	}
	if body := ask(t, s, "GET /metrics HTTP/1.1\n"+here).Body.String(); !strings.Contains(body, "\ncelld_handler_panics_total 1\n") {
		t.Error("the panic is not counted")
	}
}

// Profiles are taken one at a time, for as long as there is time to send them.
func TestProfiles(t *testing.T) {
	s := newTestSite(t, Options{Pprof: true})
	get := func(path string) *httptest.ResponseRecorder {
		return ask(t, s, "GET /debug/pprof/"+path+" HTTP/1.1\n"+here)
	}
	if body := get("").Body.String(); !strings.HasPrefix(body, "profiles of go") ||
		!strings.Contains(body, ", below this address:\nprofile?seconds=5\ntrace?seconds=1\n") || !strings.Contains(body, "\nheap\n") {
		t.Errorf("%q", body)
	}
	for path, want := range map[string]int{
		"heap": 200, "goroutine?debug=1": 200, "none": 404, "cmdline": 404, "symbol": 404, "heap?seconds=0": 400, "heap?seconds=x": 400,
		"heap?seconds=10": 400, "heap?%zz": 400, "profile?seconds=10": 400, "trace?seconds=-1": 400,
		"trace?seconds=1": 200, "profile?seconds=1": 200,
	} {
		if w := get(path); w.Code != want || want == 200 && w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
	for seconds, want := range map[string]bool{"1": true, "9": true, "0": false, "10": false, "": false} {
		if fits(map[string][]string{"seconds": {seconds}}, "heap") != want {
			t.Errorf("%q seconds", seconds)
		}
	}
	form := (map[string][]string{})
	if !fits(form, "heap") || form["seconds"] != nil || !fits(form, "profile") || form["seconds"][0] != "5" {
		t.Error(form)
	}
	if form := (map[string][]string{}); !fits(form, "trace") || form["seconds"][0] != "1" {
		t.Error(form)
	}
	s.profiling.Store(true)
	if w := get("heap"); w.Code != 503 || !strings.Contains(w.Body.String(), "another profile is being taken") {
		t.Error(answer(w))
	}
}
