package web

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// proxied runs an example's proxy between this test, an app and a celld: requests pass, are limited, and when celld is dead they pass
// or, where that is safer, do not. Its files are the example's, with the addresses of this test.
func proxied(t *testing.T, example string, command func(dir string) *exec.Cmd, replace ...string) {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "app "+r.URL.String()) }))
	t.Cleanup(app.Close)
	srv := harness.Spec{Dies: true, Flags: []string{"--http-bind", "127.0.0.1:0", "--policies", tokenFile(t, "api 2/1h\nlogin 1/1h")}}.Start(t)
	front, dir := "127.0.0.1:"+harness.FreePort(t), t.TempDir()
	files, err := filepath.Glob("../../examples/" + example + "/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example: %v", err)
	}
	addresses := strings.NewReplacer(append([]string{"127.0.0.1:8000", front, "127.0.0.1:8080", srv.HTTP(), "127.0.0.1:3000", app.Listener.Addr().String()}, replace...)...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(addresses.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(dir)
	cmd.Dir, cmd.Env = dir, harness.CleanEnv()
	harness.RunPeer(t, example, dir, cmd, func() bool {
		conn, err := net.Dial("tcp", front)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	ask := func(path string, want int) {
		t.Helper()
		status, header, body := harness.Get(srv, "http://"+front+path, "X-Real-IP", "forged")
		if status != want || (status == 200) != (body == "app "+path) || (status == 429) != (header.Get("Retry-After") != "") {
			t.Errorf("%s: %d, %v, %q; want %d", path, status, header, body, want)
		}
	}
	ask("/a?by=x", 200)
	ask("/b", 200)
	ask("/c", 429)
	ask("/login", 200)
	ask("/login", 429)
	if got := harness.Dial(t, srv.Addr).Do("CL.TAKE", "127.0.0.1", "@api", "PEEK"); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
		t.Errorf("the key is not the client's address: %q", got)
	}
	srv.Cmd.Process.Kill()
	<-srv.Exited
	ask("/c", 200)
	ask("/login", 503)
}

func TestNginx(t *testing.T) {
	t.Parallel()
	path := harness.Need(t, "nginx")
	proxied(t, "nginx", func(dir string) *exec.Cmd {
		return exec.Command(path, "-p", dir, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;")
	}, "\nhttp {\n", "\nhttp {\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\nuwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n")
}

func TestHAProxy(t *testing.T) {
	t.Parallel()
	path := harness.Need(t, "haproxy")
	proxied(t, "haproxy", func(string) *exec.Cmd { return exec.Command(path, "-db", "-f", "haproxy.cfg") })
}
