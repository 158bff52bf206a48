package web

import (
	"encoding/json"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// stats reads /stats.json.
func stats(t *testing.T, srv *harness.Server, headers ...string) (v map[string]any) {
	t.Helper()
	status, header, body := srv.Get("/stats.json", headers...)
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != 200 || header.Get("Content-Type") != "application/json" ||
		header.Get("Cache-Control") != "no-store" || header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Fatalf("%d %v %q: %v", status, header, body, err)
	}
	return v
}

// at returns a value by its path, such as files.append_only.bytes.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// The page and its numbers need the token, and rules keep it to itself.
func TestPageIsGuarded(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-token-file", tokenFile(t, "secret"))
	for _, path := range []string{"/", "/stats.json"} {
		status, header, body := srv.Get(path)
		if status != 401 || header.Get("WWW-Authenticate") == "" || strings.Contains(body, "version") {
			t.Errorf("%s: %d %q", path, status, body)
		}
		conn := harness.Dial(t, srv.HTTP())
		conn.Send([]byte("GET " + path + " HTTP/1.1\r\nHost: celld.example\r\nAuthorization: Bearer secret\r\n\r\n"))
		if line, err := conn.R.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("%s with the token: %q, %v", path, line, err)
		}
	}
	_, header, body := srv.Get("/", "Authorization", "Basic OnNlY3JldA==")
	rules := header.Get("Content-Security-Policy")
	for _, rule := range []string{
		"default-src 'none'; ", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'; ", "frame-ancestors 'none'; ",
		"require-trusted-types-for 'script'",
	} {
		if !strings.Contains(rules, rule) {
			t.Errorf("no %s in %s", rule, rules)
		}
	}
	if strings.Contains(rules, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" ||
		header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(body, "<!doctype html>") {
		t.Errorf("%v %.40q", header, body)
	}
	stats(t, srv, "Authorization", "Bearer secret")
}

// A web site whose own name leads here gets nothing.
func TestPageByAnotherName(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-pprof", "yes")
	_, port := harness.HostPort(srv.HTTP())
	for _, path := range []string{"/", "/stats.json", "/debug/pprof/heap"} {
		for host, status := range map[string]string{
			"evil.example": "403", "evil.example:" + port: "403", "localhost:" + port: "200", "127.0.0.1:" + port: "200", "[::1]": "200",
		} {
			conn := harness.Dial(t, srv.HTTP())
			conn.Send([]byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
			if line, err := conn.R.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+status+" ") {
				t.Errorf("%s by %s: %q, %v", path, host, line, err)
			}
			conn.Close()
		}
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	srv := start(t, "--appendonly", "yes", "--save", "3600 1000000")
	c := harness.Dial(t, srv.Addr)
	c.Do("CL.POLICY", "SET", "api", "2/1h")
	for range 3 {
		c.Do("CL.TAKE", "<img src=x>\xff\x00\u202e\"", "@api")
		c.Do("CL.THROTTLE", "other", "0", "1", "3600")
	}
	c.Do("CL.TAKE", "shadowed", "1/1h,shadow", "COST", "2")
	c.Do("nonsense")
	var v map[string]any
	celldtest.Eventually(t, "a reading after that", func() bool { v = stats(t, srv); return v["allowed"] == 4.0 })
	for path, want := range map[string]any{
		"version": "0.1.0", "limited": 3.0, "more_policies": 0.0, "engine": nil, "error_replies": 1.0, "certificate_ends_unix_ms": 0.0,
		"keys.held": 2.0, "keys.most": 1000000.0, "keys.evicted": 0.0, "connections.open": 1.0, "connections.received": 1.0,
		"waiting.calls": 0.0, "waiting.most": 10000.0, "files.append_only.failed": false, "files.snapshot.failed": false,
		"files.snapshot.taken_unix_ms": 0.0, "files.snapshot.changes_since": 5.0,
	} {
		if got := at(v, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{"uptime_ms", "unix_ms", "heap_bytes", "process_bytes", "keys.bytes"} {
		if n, _ := at(v, path).(float64); n <= 0 {
			t.Errorf("%s is %v", path, at(v, path))
		}
	}
	policies, _ := json.Marshal(v["policies"])
	for _, want := range []string{
		`{"algorithm":"gcra","allowed":2,"limited":1,"limits":"2/1h","near":0,"policy":"api","shadow_limited":0}`,
		`{"algorithm":"gcra","allowed":2,"limited":2,"limits":"","near":0,"policy":"literals","shadow_limited":1}`,
	} {
		if !strings.Contains(string(policies), want) {
			t.Errorf("no %s in %s", want, policies)
		}
	}
	top, _ := json.Marshal(v["most_limited"])
	if calls, ok := v["most_calls"].([]any); !ok || len(calls) == 0 {
		t.Errorf("who calls most: %v", v["most_calls"])
	}
	if string(top) != `[{"count":2,"key":"other"},{"count":1,"key":"\u003cimg src=x\u003e\\xff\\x00\\u202e\""}]` {
		t.Errorf("most limited: %s", top)
	}
	calls, most := at(v, "latency.calls").([]any), at(v, "latency.most_ns").([]any)
	sum := 0.0
	for _, n := range calls {
		sum += n.(float64)
	}
	if len(calls) != len(most) || sum != 8 {
		t.Errorf("latency: %v calls in %d of %d", sum, len(calls), len(most))
	}
}

// On an engine there are no keys and files, and the page shows troubles.
func TestStatsOnAnEngine(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	srv := start(t, "--store", "redis://127.0.0.1:"+port, "--store-failure", "allow")
	var v map[string]any
	trouble := func() string { v = stats(t, srv); text, _ := json.Marshal(v["troubles"]); return string(text) }
	celldtest.Eventually(t, "a trouble", func() bool { return strings.HasPrefix(trouble(), `["the engine is away: `) })
	if v["keys"] != nil || v["files"] != nil || at(v, "engine.mode") != "allow" {
		t.Errorf("%v", v)
	}
	celldtest.StartRedis(t, "--port", port)
	celldtest.Eventually(t, "no trouble", func() bool { return trouble() == "[]" && at(v, "engine.mode") == "engine" })
	if kind := at(v, "engine.kind"); kind != "standalone" {
		t.Errorf("%v", kind)
	}
}

// With TLS the end of the certificate is there.
func TestStatsOfACertificate(t *testing.T) {
	t.Parallel()
	srv := startSecure(t, "--tls-auth-clients", "no")
	_, body, _, err := srv.get(srv.client(t, "", ""), "/stats.json")
	if err != nil || !strings.Contains(body, `"certificate_ends_unix_ms":1`) {
		t.Errorf("%q, %v", body, err)
	}
}
