package web

import (
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// Profiles are served where they are asked for, to whom the rest is, too.
func TestProfiles(t *testing.T) {
	t.Parallel()
	srv := start(t, "--http-pprof", "yes", "--http-token-file", tokenFile(t, "secret"), "--requirepass", "sesame")
	token := []string{"Authorization", "Bearer secret"}
	want(t, srv, "/debug/pprof/heap", 401, "token")
	for path, status := range map[string]int{
		"": 200, "heap": 200, "goroutine?debug=2": 200, "profile?seconds=1": 200,
		"cmdline": 404, "symbol": 404, "nothing": 404, "../pprof/heap": 404, "heap/": 404, "%68eap": 404,
		"profile?seconds=10": 400, "trace?seconds=10": 400, "heap?seconds=10": 400, "profile?seconds=0": 400, "profile?seconds=0.5": 400,
		"profile?seconds=": 400, "trace?seconds=-1": 400, "heap?seconds=x": 400, "heap?%zz": 400,
	} {
		got, _, body := srv.Get("/debug/pprof/"+path, token...)
		if got != status || strings.Contains(body, "sesame") || got == 200 && !strings.Contains(path, "?s") && body == "" {
			t.Errorf("%s: %d %.200q", path, got, body)
		}
		if path == "" && !strings.Contains(body, "\nheap\n") {
			t.Errorf("the list: %q", body)
		}
		if strings.HasPrefix(path, "profile?seconds=1") && got == 200 {
			file := t.TempDir() + "/cpu"
			celldtest.WriteFile(t, body, file)
			if out := harness.Tool(t, "go", "tool", "pprof", "-raw", file); !strings.Contains(out, "cpu/nanoseconds") {
				t.Errorf("go tool pprof: %.200q", out)
			}
		}
	}
	var conns []*harness.Conn
	celldtest.Eventually(t, "one profile at a time", func() bool {
		conn := harness.Dial(t, srv.HTTP())
		conns = append(conns, conn)
		conn.Send([]byte("GET /debug/pprof/profile?seconds=9 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n"))
		status, _, _ := srv.Get("/debug/pprof/heap", token...)
		return status == 503
	})
	for _, conn := range conns {
		conn.Close()
	}
	celldtest.Eventually(t, "the next profile", func() bool {
		status, _, _ := srv.Get("/debug/pprof/heap", token...)
		return status == 200
	})
}

// Without the flag there is nothing to be seen of it.
func TestNoProfiles(t *testing.T) {
	t.Parallel()
	srv := start(t)
	_, _, nothing := srv.Get("/nothing")
	for _, path := range []string{
		"/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/profile?seconds=1",
	} {
		if status, _, body := srv.Get(path); status != 404 || body != nothing {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}
