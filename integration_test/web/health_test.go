// Package web has the tests of the HTTP port.
package web

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// start runs a celld with an HTTP port.
func start(t *testing.T, flags ...string) *harness.Server {
	t.Helper()
	return harness.Start(t, append([]string{"--http-bind", "127.0.0.1:0"}, flags...)...)
}

// tokenFile writes a token as an editor would, with a line break.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// want fails the test unless this is answered.
func want(t *testing.T, srv *harness.Server, path string, status int, text string) {
	t.Helper()
	if got, _, body := srv.Get(path); got != status || !strings.Contains(body, text) {
		t.Errorf("%s: %d, %q; want %d, %q", path, got, body, status, text)
	}
}

// Health needs no token. It makes a decision, which leaves no key.
func TestHealth(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-token-file", tokenFile(t, "secret"), "--requirepass", "other", "--maxclients", "1")
	want(t, srv, "/livez", 200, "ok\n")
	want(t, srv, "/readyz", 200, "ok\n")
	want(t, srv, "/readyz?x=1", 200, "ok\n")
	for _, path := range []string{"/nothing", "/readyz/", "//readyz", "/x/../readyz", "/livez%2f"} {
		want(t, srv, path, 401, "--http-token-file")
		if status, _, body := srv.Get(path, "Authorization", "Bearer secret"); status != 404 {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	c := harness.Dial(t, srv.Addr)
	c.Do("AUTH", "other")
	if got := c.Do("DBSIZE"); got != ":0\r\n" {
		t.Errorf("keys: %q", got)
	}
	c.Do("MONITOR")
	want(t, srv, "/readyz", 200, "ok\n")
	if got := c.Reply(); !strings.Contains(got, `"CL.TAKE" "celld:readyz" "1/1s"`) {
		t.Errorf("no decision was made: %q", got)
	}
	if strings.Contains(srv.Log.String(), "secret") {
		t.Error("the log has the token")
	}
}

// Clients do not send the blanks around the token in its file, as HTTP drops blanks around the value of a header.
func TestToken(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-token-file", tokenFile(t, " secret \t\r"))
	for header, status := range map[string]int{
		"Bearer secret":            404,
		"bearer secret":            404,
		"Basic eDpzZWNyZXQ=":       404, // x:secret
		"Basic OnNlY3JldA==":       404, // :secret
		"Basic eDpzZWNyZXR4":       401, // x:secretx
		"Basic c2VjcmV0Og==":       401, // secret:
		"Bearer secre":             401,
		"Bearer secret\tx":         401,
		"Bearer":                   401,
		"secret":                   401,
		"Basic %%%":                401,
		"Digest username=\"secret": 401,
		"":                         401,
	} {
		got, head, body := srv.Get("/x", "Authorization", header)
		if got != status || (got == 401) != (head.Get("WWW-Authenticate") != "") {
			t.Errorf("%q: %d %q", header, got, body)
		}
	}
}

// A server that stops is not ready, and serves on meanwhile.
func TestNotReadyWhileStopping(t *testing.T) {
	t.Parallel()
	srv := start(t, "--shutdown-delay", "3600")
	c := harness.Dial(t, srv.Addr)
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	celldtest.Eventually(t, "not ready", func() bool {
		status, _, body := srv.Get("/readyz")
		return status == 503 && body == "the server is stopping\n"
	})
	want(t, srv, "/livez", 200, "ok")
	if got := c.Do("CL.THROTTLE", "k", "1", "1", "60"); !strings.HasPrefix(got, "*5\r\n:0\r\n") {
		t.Errorf("%q", got)
	}
	if got := c.Do("SHUTDOWN", "ABORT"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	celldtest.Eventually(t, "ready again", func() bool { status, _, _ := srv.Get("/readyz"); return status == 200 })
	c.Do("CONFIG", "SET", "shutdown-delay", "0") // for the test's end
}

// A second signal ends the delay. Until then decisions are made by HTTP and by RESP, and /readyz fails.
func TestASecondSignalEndsTheDelay(t *testing.T) {
	t.Parallel()
	srv := start(t, "--shutdown-delay", "3600")
	c := harness.Dial(t, srv.Addr)
	c.Do("CL.POLICY", "SET", "api", "100/1h")
	want(t, srv, "/readyz", 200, "ok\n")
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	celldtest.Eventually(t, "not ready", func() bool { status, _, _ := srv.Get("/readyz"); return status == 503 })
	for range 10 {
		want(t, srv, "/readyz", 503, "the server is stopping\n")
		want(t, srv, "/livez", 200, "ok\n")
		want(t, srv, "/check/api/by/word:a", 200, "")
		if got := harness.Dial(t, srv.Addr).Do("CL.TAKE", "a", "@api"); !strings.HasPrefix(got, "*7\r\n:0\r\n") {
			t.Errorf("%q", got)
		}
	}
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	srv.Wait(0)
}

// With --store, the engine is asked too, and what it lacks is said, whatever --store-failure allows.
func TestNotReadyWithoutTheEngine(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"error", "allow"} {
		port := harness.FreePort(t)
		srv := start(t, "--store", "redis://127.0.0.1:"+port, "--store-failure", failure)
		want(t, srv, "/readyz", 503, "the engine is away: ")
		want(t, srv, "/livez", 200, "ok")
		celldtest.StartRedis(t, "--port", port)
		celldtest.Eventually(t, "ready", func() bool { status, _, _ := srv.Get("/readyz"); return status == 200 })
	}
}

// Thousands of connections that send half a request, or nothing, do not touch clients of RESP. They end after 5 s.
func TestSlowloris(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-max-connections", "100", "--maxclients", "10")
	addr, began := srv.HTTP(), time.Now()
	for i := range 300 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		}
	}
	c := harness.Dial(t, srv.Addr)
	for i := range 1000 {
		if got := c.Do("CL.THROTTLE", fmt.Sprint("k", i), "1", "1", "60"); !strings.HasPrefix(got, "*5\r\n:0\r\n") {
			t.Fatalf("%q", got)
		}
	}
	if got := c.Do("INFO", "clients"); !strings.Contains(got, "connected_clients:1\r\n") {
		t.Errorf("%q", got)
	}
	if conn := harness.Dial(t, addr); time.Since(began) < 4*time.Second { // before the first of them ends
		conn.Expect("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		conn.Closed()
	}
	celldtest.Eventually(t, "room", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
		start := make([]byte, 15)
		_, err = io.ReadFull(conn, start)
		return err == nil && string(start) == "HTTP/1.1 200 OK"
	})
}

// Bytes that are no request, and requests that are too large, get an error, and the connection is closed.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	srv := start(t)
	for request, status := range map[string]string{
		"PING\r\n\r\n":                "400",
		"*1\r\n$4\r\nPING":            "400",
		"GET / HTTP/9.9\r\n":          "505",
		"GET /livez HTTP/1.1\r\n\r\n": "400", // no Host
		"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 17<<10) + "\r\n\r\n": "431",
		"GET /" + strings.Repeat("x", 17<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n":             "431",
		"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":                "405",
	} {
		conn := harness.Dial(t, srv.HTTP())
		conn.Send([]byte(request + "\r\n"))
		line, err := conn.R.ReadString('\n')
		if !strings.HasPrefix(line, "HTTP/1.1 "+status+" ") {
			t.Errorf("%.40q: %q, %v", request, line, err)
		}
	}
	want(t, srv, "/livez", 200, "ok")
}
