package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// mounted is a folder of files as Kubernetes mounts a Secret: all are links that change at once.
type mounted struct {
	*testing.T
	dir   string
	files map[string]string
	n     int
}

// put changes files by names and texts.
func (m *mounted) put(words ...string) {
	m.Helper()
	for i := 0; i < len(words); i += 2 {
		m.files[words[i]] = words[i+1]
	}
	m.n++
	now := fmt.Sprintf("..%d", m.n)
	if err := os.Mkdir(filepath.Join(m.dir, now), 0o755); err != nil {
		m.Fatal(err)
	}
	for name, text := range m.files {
		celldtest.WriteFile(m, text, m.dir, now, name)
		_ = os.Symlink(filepath.Join("..data", name), m.path(name))
	}
	_ = os.Symlink(now, m.path("..data_tmp"))
	if err := os.Rename(m.path("..data_tmp"), m.path("..data")); err != nil {
		m.Fatal(err)
	}
	_ = os.RemoveAll(m.path(fmt.Sprintf("..%d", m.n-1)))
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

// TestWatch rotates each secret and changes the other files while a client calls, without a signal. No call fails. What is wrong changes
// nothing and is told.
func TestWatch(t *testing.T) {
	t.Parallel()
	engine := celldtest.StartRedis(t, "--requirepass", "engine-1")
	m := &mounted{T: t, dir: t.TempDir(), files: map[string]string{}}
	m.put("engine", "engine-1\n", "password", "pass-1\n", "token", "token-1\n", "policies", "api 1000000/1h\n", "level", "notice")
	srv := harness.Start(t, "--store", strings.Replace(engine, "unix:", "unix://", 1), "--store-password-file", m.path("engine"),
		"--requirepass-file", m.path("password"), "--http-bind", "127.0.0.1:0", "--http-token-file", m.path("token"),
		"--policies", m.path("policies"), "--loglevel-file", m.path("level"))
	auth := func(password string) (c *harness.Conn, ok bool) {
		c = harness.Dial(t, srv.Addr)
		return c, c.Do("AUTH", password) == "+OK\r\n"
	}
	open, _ := auth("pass-1")
	direct := harness.Dial(t, engine)
	direct.Do("AUTH", "engine-1")

	var load sync.WaitGroup
	stop := make(chan struct{})
	calls := 0
	load.Go(func() {
		for ; ; calls++ {
			select {
			case <-stop:
				return
			default:
			}
			if got, err := open.TryDo([]string{"CL.TAKE", "k", "@api"}); err != nil || !strings.HasPrefix(got, "*7\r\n:0\r\n") {
				t.Errorf("a call while files change: %q, %v", got, err)
				return
			}
		}
	})
	direct.Do("CONFIG", "SET", "requirepass", "engine-2")
	m.put("engine", "engine-2\n", "password", "pass-2\n", "token", "token-2\n", "policies", "api 2000000/1h\nnew 1/1h\n", "level", "debug")
	status := func(token string) int {
		code, _, _ := srv.Get("/stats.json", "Authorization", "Bearer "+token)
		return code
	}
	celldtest.Eventually(t, "the new password", func() bool { _, ok := auth("pass-2"); return ok })
	celldtest.Eventually(t, "the new token", func() bool { return status("token-2") == 200 })
	srv.Logs(`"msg":"a file is taken","setting":"store-password-file"`, `"setting":"policies"`, `"setting":"loglevel-file"`)
	if _, ok := auth("pass-1"); ok || status("token-1") != 401 {
		t.Error("an old secret is good")
	}
	c, _ := auth("pass-2")
	celldtest.Eventually(t, "the new policies", func() bool {
		return c.Do("CL.POLICY", "GET", "api") == "$10\r\n2000000/1h\r\n" && c.Do("CL.POLICY", "GET", "new") == "$4\r\n1/1h\r\n"
	})
	if got := c.Do("CONFIG", "GET", "loglevel"); !strings.Contains(got, "debug") {
		t.Errorf("%q", got)
	}
	close(stop)
	if load.Wait(); calls == 0 {
		t.Error("no call was made")
	}
	// The engine closes its connections: the new ones take the new password.
	direct.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	celldtest.Eventually(t, "it calls the engine again", func() bool {
		return strings.HasPrefix(c.Do("CL.TAKE", "k", "@api"), "*7\r\n:0\r\n")
	})

	metric := func(setting string) string {
		_, _, page := srv.Get("/metrics", "Authorization", "Bearer token-2")
		_, value, _ := strings.Cut(page, `celld_file_refused{file="`+setting+`"} `)
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	m.put("password", "\n", "policies", "api\n", "token", "", "engine", "\n")
	for _, setting := range []string{"requirepass-file", "policies", "http-token-file", "store-password-file"} {
		celldtest.Eventually(t, setting+" is refused", func() bool { return metric(setting) == "1" })
		srv.Logs(`"msg":"a file is refused, and what was read before stays","setting":"` + setting + `"`)
	}
	if _, ok := auth("pass-2"); !ok || c.Do("CL.POLICY", "GET", "api") != "$10\r\n2000000/1h\r\n" {
		t.Error("a wrong file has changed something")
	}
	celldtest.WriteFile(t, "pass-3\n", m.path("password")) // as an editor does, in place
	celldtest.Eventually(t, "the third password", func() bool { _, ok := auth("pass-3"); return ok && metric("requirepass-file") == "0" })
	for _, secret := range []string{"pass-1", "pass-2", "pass-3", "token-1", "token-2", "engine-1", "engine-2"} {
		if strings.Contains(srv.Log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// TestNoWatch takes files at SIGHUP only.
func TestNoWatch(t *testing.T) {
	t.Parallel()
	file := celldtest.TempFile(t, "one\n")
	srv := harness.Start(t, "--requirepass-file", file, "--watch", "no")
	celldtest.WriteFile(t, "two\n", file)
	if said := reload(srv); !strings.Contains(said, `"setting":"requirepass-file"`) {
		t.Errorf("%s", said)
	}
	if got := harness.Dial(t, srv.Addr).Do("AUTH", "two"); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
}
