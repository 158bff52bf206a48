package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// withPolicies starts a celld with policies, and returns a connection to it.
func withPolicies(t *testing.T, flags ...string) (*harness.Server, *harness.Conn) {
	t.Helper()
	srv := start(t, flags...)
	c := harness.Dial(t, srv.Addr)
	for name, limit := range map[string]string{"one": "1/1h", "api": "3/1h", "slow": "60/1h,burst=1"} {
		if got := c.Do("CL.POLICY", "SET", name, limit); got != ":1\r\n" {
			t.Fatal(got)
		}
	}
	return srv, c
}

// A check takes from the limit that CL.TAKE has under the same key, and tells it as the drafts say.
func TestCheck(t *testing.T) {
	t.Parallel()
	srv, c := withPolicies(t)
	status, header, body := srv.Get("/check/api/x/by/x-user?cost=9&key=bob", "X-User", "alice")
	if status != 200 || body != "ok\n" || header.Get("RateLimit-Policy") != `"api";q=3;w=3600` ||
		header.Get("RateLimit") != `"api";r=2;t=1200` || header.Get("X-RateLimit-Limit") != "3" ||
		header.Get("X-RateLimit-Remaining") != "2" || header.Get("X-RateLimit-Reset") != "1200" || header.Get("Retry-After") != "" {
		t.Errorf("%d %v %q", status, header, body)
	}
	if got := c.Do("CL.TAKE", "alice", "@api", "COST", "2"); !strings.HasPrefix(got, "*7\r\n:0\r\n:3\r\n:0\r\n") {
		t.Errorf("%q", got)
	}
	status, header, body = srv.Get("/check/api:gold/by/x-user", "X-User", "alice")
	var p struct {
		Type, Title, Detail string
		Status              int
		Violated            []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != 429 || p.Title == "" ||
		!strings.HasSuffix(p.Type, "#quota-exceeded") || fmt.Sprint(p.Violated) != "[api]" {
		t.Errorf("%q, %v", body, err)
	}
	if after, err := strconv.Atoi(header.Get("Retry-After")); err != nil || after > 1200 || after < 1100 {
		t.Errorf("Retry-After: %d, %v", after, err)
	}
	if status != 429 || header.Get("RateLimit") == "" || header.Get("X-RateLimit-Limit") != "" ||
		header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", status, header)
	}
	if status, header, _ := srv.Get("/check/api/deny/403/by/x-user", "X-User", "alice"); status != 403 || header.Get("Retry-After") == "" {
		t.Errorf("%d %v", status, header)
	}
	if got := c.Do("DBSIZE"); got != ":1\r\n" {
		t.Errorf("keys: %q", got)
	}
	info := c.Do("INFO", "stats")
	if !strings.Contains(info, "take_allowed:2\r\ntake_limited:2\r\n") {
		t.Errorf("%q", info)
	}
}

// Any method and body gets the same answer.
func TestCheckMethods(t *testing.T) {
	t.Parallel()
	srv, _ := withPolicies(t)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"} {
		for _, want := range []int{200, 429} {
			req, err := http.NewRequest(method, "http://"+srv.HTTP()+"/check/one/by/word:"+method, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: %d, want %d", method, resp.StatusCode, want)
			}
		}
	}
}

// The key is made of the sources, and nothing else.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	srv, c := withPolicies(t, "--trusted-proxies", "127.0.0.1 10.0.0.0/8")
	for _, test := range []struct {
		path, key string
		headers   []string
	}{
		{"x-user", "alice", []string{"X-User", "alice"}},
		{"client-address", "192.0.2.1", []string{"X-Forwarded-For", "1.1.1.1, 192.0.2.1, 10.0.0.2"}},
		{"x-user/client-address", "/5/alice/9/192.0.2.1", []string{"X-User", "alice", "X-Forwarded-For", "192.0.2.1"}},
		{"word:a%2Fb", "a/b", nil},
		{"word:%2F", "/1//", nil},
		{"host/word:all", "/" + fmt.Sprint(len(srv.HTTP())) + "/" + srv.HTTP() + "/3/all", nil},
	} {
		if status, _, body := srv.Get("/check/one/by/"+test.path, test.headers...); status != 200 {
			t.Errorf("%s: %d %q", test.path, status, body)
		}
		if got := c.Do("CL.TAKE", test.key, "@one"); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
			t.Errorf("%s has not taken from %s: %q", test.path, test.key, got)
		}
	}
}

// A mistake gets one line, takes nothing, and leaves no key.
func TestBadChecks(t *testing.T) {
	t.Parallel()
	srv, c := withPolicies(t, "--trusted-proxies", "127.0.0.1")
	for _, test := range []struct {
		path    string
		status  int
		detail  string
		headers []string
	}{
		{"one/by/x-user", 400, "X-User is missing", nil},
		{"one/by/x-user", 400, "X-User is missing", []string{"X-User", ""}},
		{"one/by/x-user", 400, "2 times", []string{"X-User", "a", "x-user", "b"}},
		{"one/by/client-address", 400, "X-Forwarded-For", nil},
		{"one/by/client-address", 400, "X-Forwarded-For", []string{"X-Forwarded-For", "x"}},
		{"none/by/word:x", 404, "no such policy", nil},
		{"1%2F1h/by/word:x", 404, "no such policy", nil},
		{"one", 404, "expected /check/", nil},
		{"one/by", 404, "expected /check/", nil},
		{"one/deny/500/by/word:x", 404, "expected /check/", nil},
		{"one/by/a%20b", 404, "not a source", nil},
	} {
		status, header, body := srv.Get("/check/"+test.path, test.headers...)
		if status != test.status || !strings.Contains(body, test.detail) || strings.Count(body, "\n") != 1 ||
			header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %q", test.path, status, body)
		}
	}
	if got := c.Do("DBSIZE"); got != ":0\r\n" {
		t.Errorf("keys: %q", got)
	}
	c.Do("SET", "text", "1800000000000000000")
	if status, _, body := srv.Get("/check/one/by/word:text"); status != 500 || !strings.Contains(body, "WRONGTYPE") {
		t.Errorf("%d %q", status, body)
	}
}

// A celld that has not reached its engine does not know its policies. It does not say that there is none: proxies would deny.
func TestCheckBeforeTheEngineAnswers(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	for _, failure := range []string{"error", "allow"} {
		srv := start(t, "--store", "redis://127.0.0.1:"+port, "--store-failure", failure)
		want(t, srv, "/check/one/by/word:x", 503, "STOREDOWN the engine cannot be reached")
	}
	srv := start(t, "--store", "redis://127.0.0.1:"+port)
	celldtest.StartRedis(t, "--port", port)
	celldtest.Eventually(t, "it knows that there is no policy", func() bool {
		status, _, _ := srv.Get("/check/one/by/word:x")
		return status == 404
	})
}

// Without its engine, celld answers as --store-failure says.
func TestCheckWithoutTheEngine(t *testing.T) {
	t.Parallel()
	for failure, want := range map[string]int{"error": 503, "allow": 200, "deny": 429} {
		policies := tokenFile(t, "one 1/1h")
		srv := start(t, "--store", "redis://127.0.0.1:"+harness.FreePort(t), "--store-failure", failure, "--policies", policies)
		for range 2 {
			if status, _, body := srv.Get("/check/one/by/word:k"); status != want {
				t.Errorf("%s: %d %q", failure, status, body)
			}
		}
	}
}

// On an engine, a check and CL.TAKE decide by one state.
func TestCheckOnAnEngine(t *testing.T) {
	t.Parallel()
	redis := celldtest.StartRedis(t)
	srv, c := withPolicies(t, "--store", "unix://"+strings.TrimPrefix(redis, "unix:"))
	celldtest.Eventually(t, "ready", func() bool { status, _, _ := srv.Get("/readyz"); return status == 200 })
	if status, _, body := srv.Get("/check/one/by/word:k"); status != 200 {
		t.Errorf("%d %q", status, body)
	}
	if got := c.Do("CL.TAKE", "k", "@one"); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
		t.Errorf("%q", got)
	}
	if status, _, body := srv.Get("/check/one/by/word:k"); status != 429 {
		t.Errorf("%d %q", status, body)
	}
}
