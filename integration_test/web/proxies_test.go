//go:build all

package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// optional is a line of an example for readers with a token or a key of two parts.
var optional = regexp.MustCompile(`(?m)^(\s*)(?:#|--) (.* (?:#|--) with (?:--http-token-file|by/x-api-key/x-real-ip))$`)

// denied is any answer that is not the app's.
const denied = 0

// proxied runs an example's proxy between this test, an app and a celld: requests pass, are limited, and when celld hangs or is dead they
// pass or, where that is safer, do not. Its files are the example's, with the addresses of this test: once as they are, and once with a
// token and a key of two parts.
func proxied(t *testing.T, example string, command func(dir string) *exec.Cmd, replace ...string) {
	t.Helper()
	proxiedAs(t, true, example, command, slices.Clone(replace))
	proxiedAs(t, false, example, command, slices.Clone(replace))
}

func proxiedAs(t *testing.T, plain bool, example string, command func(dir string) *exec.Cmd, replace []string) {
	t.Helper()
	var broken atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Saw-Keys", strings.Join(r.Header["X-Api-Key"], " and "))
		if r.URL.Path == "/broken" {
			broken.Add(1)
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nno header\r\n\r\n")
				conn.Close()
			}
			return
		}
		_, _ = fmt.Fprintf(w, "app %s %s %s", r.Method, r.URL, body)
	}))
	t.Cleanup(app.Close)
	flags := []string{"--http-bind", "127.0.0.1:0", "--policies", tokenFile(t, "api 3/1h\nlogin 1/1h")}
	key := "127.0.0.1"
	if !plain {
		flags = append(flags, "--http-token-file", tokenFile(t, "sesame"))
		replace = append(replace, "/by/x-real-ip", "/by/x-api-key/x-real-ip", "Bearer …", "Bearer sesame")
		key = "/5/alice/9/127.0.0.1"
	}
	srv := harness.Spec{Dies: true, Flags: flags}.Start(t)
	front, dir := "127.0.0.1:"+harness.FreePort(t), t.TempDir()
	files, err := filepath.Glob("../../examples/" + example + "/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example: %v", err)
	}
	for port, addr := range map[string]string{
		"8000": front, "8001": "127.0.0.1:" + harness.FreePort(t), "8080": srv.HTTP(), "3000": app.Listener.Addr().String(),
	} {
		_, own := harness.HostPort(addr)
		replace = append(replace, "127.0.0.1:"+port, addr, "port_value: "+port, "port_value: "+own, "http://:"+port, "http://:"+own)
	}
	own := strings.NewReplacer(replace...)
	options := 0
	for _, file := range files {
		text := celldtest.ReadFile(t, file)
		options += len(optional.FindAllString(text, -1))
		if !plain {
			text = optional.ReplaceAllString(text, "${1}${2}")
		}
		celldtest.WriteFile(t, own.Replace(text), dir, filepath.Base(file))
	}
	if options < 2 {
		t.Error("no line says how a token or a key of two parts is sent")
	}
	cmd := command(dir)
	cmd.Dir, cmd.Env = dir, append(harness.CleanEnv(), "HOME="+dir)
	celldtest.RunPeer(t, example, dir, cmd, func() bool {
		resp, err := http.Get("http://" + front)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode != 404 // which Traefik answers until it has read its routes
	})
	client := harness.Dial(t, srv.Addr)
	client.Do("FLUSHALL")
	asked, browser := 0, &http.Client{Timeout: harness.ReplyTimeout}
	tells := example != "traefik" // as it cannot add to the answers of the app
	ask := func(method, path string, want int, headers ...string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+front+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		asked++
		forged := fmt.Sprintf("192.0.2.%d", asked)
		headers = append([]string{"Host", "app.example", "Origin", "https://page.app.example", "Sec-Fetch-Site", "same-site", "Accept",
			"*/*", "X-Api-Key", "alice", "X-Real-IP", forged, "X-Forwarded-For", forged, "Forwarded", "for=" + forged}, headers...)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
			if headers[i+1] == "" {
				req.Header.Del(headers[i])
			}
		}
		req.Host = req.Header.Get("Host")
		resp, err := browser.Do(req)
		if err != nil && want == denied {
			return // HAProxy closes while this still writes
		} else if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		status := resp.StatusCode
		if status >= 500 { // Traefik's are 502 and 504
			status = 503
		}
		if reached := string(body) == "app "+method+" "+path+" body"; status != want && want != denied || reached != (want == 200) {
			t.Errorf("%s %s: %d, %v, %q; want %d", method, path, status, resp.Header, body, want)
		}
		for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy"} {
			if (want == 429 || want == 200 && tells && name != "Retry-After") && len(resp.Header[http.CanonicalHeaderKey(name)]) != 1 {
				t.Errorf("%s %s: no %s in %v", method, path, name, resp.Header)
			}
		}
	}
	ask("GET", "/a?by=word:x&policy=login", 200)
	ask("POST", "/b", 200)
	ask("POST", "/broken", 503)
	if n := broken.Load(); n != 1 {
		t.Errorf("an app that fails is asked %d times", n)
	}
	ask("GET", "/c", 429)
	ask("PUT", "/d?key=other", 429)
	ask("GET", "/e", denied, "Connection", "X-Real-IP, Authorization")
	long := strings.Repeat("x", 7000)
	ask("GET", "/f", denied, "X-A", long, "X-B", long, "X-C", long) // celld takes 16 KB
	ask("GET", "/g?"+long+long+long, denied)
	ask("GET", "/h", denied, "Host", long+long+long)
	ask("POST", "/login", 200)
	ask("POST", "/login?x", 429)
	if got := client.Do("CL.TAKE", key, "@api", "PEEK"); !strings.HasPrefix(got, "*7\r\n:1\r\n") {
		t.Errorf("the key is not the client's address: %q", got)
	}
	if plain {
		return
	}
	for _, path := range []string{"/i", "/login"} {
		ask("GET", path, denied, "X-Api-Key", "")
		ask("GET", path, 200, "X-Api-Key", "bob")
	}
	for _, path := range []string{"/i", "/login"} {
		req, err := http.NewRequest("GET", "http://"+front+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Api-Key"] = []string{"eve", "mallory"}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		saw := resp.Header.Get("Saw-Keys")
		if counted := fmt.Sprintf("/%d/%s/9/127.0.0.1", len(saw), saw); resp.StatusCode == 200 && client.Do("EXISTS", counted) != ":1\r\n" {
			t.Errorf("%s: the app gets the keys %s, and celld counts another", path, saw)
		}
	}
	for _, path := range []string{"/%6Cogin", "//login", "/x/../login", "/./login"} {
		ask("GET", "/login", 200, "X-Api-Key", path)
		ask("GET", path, denied, "X-Api-Key", path) // another way to write it is no way around its limit
	}
	tells = false
	srv.Cmd.Process.Signal(syscall.SIGSTOP)
	celldtest.Eventually(t, "celld stands still", func() bool {
		return strings.Contains(celldtest.ReadFile(t, "/proc", strconv.Itoa(srv.Cmd.Process.Pid), "status"), "\nState:\tT")
	})
	ask("POST", "/c", 200)
	ask("POST", "/login", 503)
	srv.Cmd.Process.Kill()
	<-srv.Exited
	ask("POST", "/c", 200)
	ask("POST", "/login", 503)
}

// ownFolders are for an nginx that may not write elsewhere.
const ownFolders = "\nhttp {\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n" +
	"uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n"

func TestNginx(t *testing.T) {
	t.Parallel()
	path := celldtest.Need(t, "nginx")
	proxied(t, "nginx", func(dir string) *exec.Cmd {
		return exec.Command(path, "-p", dir, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;")
	}, "\nhttp {\n", ownFolders)
}

func TestHAProxy(t *testing.T) {
	t.Parallel()
	path := celldtest.Need(t, "haproxy")
	proxied(t, "haproxy", func(string) *exec.Cmd { return exec.Command(path, "-db", "-f", "haproxy.cfg") })
}

func TestFailedLogins(t *testing.T) {
	t.Parallel()
	path := celldtest.Need(t, "nginx")
	const globals = "daemon off; master_process off; pid nginx.pid;"
	failedLogins(t, "nginx/failed-logins.conf", func(dir string) *exec.Cmd {
		return exec.Command(path, "-p", dir, "-c", "failed-logins.conf", "-e", "stderr", "-g", globals)
	}, "\nhttp {\n", ownFolders)
}

// failedLogins runs an example's proxy: only tries that the app refuses count, and after so many no try reaches it.
func failedLogins(t *testing.T, example string, command func(dir string) *exec.Cmd, replace ...string) {
	t.Helper()
	var tries atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1); r.FormValue("password") != "right" {
			w.Header().Set("WWW-Authenticate", `Form realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(app.Close)
	srv := harness.Spec{Flags: []string{"--http-bind", "127.0.0.1:0", "--policies", tokenFile(t, "login 3/1h")}}.Start(t)
	front, dir := "127.0.0.1:"+harness.FreePort(t), t.TempDir()
	for port, addr := range map[string]string{"8000": front, "8080": srv.HTTP(), "3000": app.Listener.Addr().String()} {
		_, own := harness.HostPort(addr)
		replace = append(replace, "127.0.0.1:"+port, addr, "port_value: "+port, "port_value: "+own)
	}
	text := strings.NewReplacer(replace...).Replace(celldtest.ReadFile(t, "../../examples", example))
	celldtest.WriteFile(t, text, dir, filepath.Base(example))
	cmd := command(dir)
	cmd.Dir, cmd.Env = dir, append(harness.CleanEnv(), "HOME="+dir)
	log := func(password string) *http.Response {
		resp, err := http.PostForm("http://"+front+"/login", url.Values{"password": {password}})
		if err != nil {
			return nil
		}
		resp.Body.Close()
		return resp
	}
	celldtest.RunPeer(t, filepath.Dir(example), dir, cmd, func() bool {
		resp := log("right")
		return resp != nil && resp.StatusCode == http.StatusOK
	})
	tries.Store(0)
	for i, step := range []struct {
		password string
		want     int
	}{{"right", 200}, {"a", 401}, {"right", 200}, {"b", 401}, {"right", 200}, {"c", 401}, {"right", 429}, {"d", 429}} {
		resp := log(step.password)
		if resp == nil || resp.StatusCode != step.want || step.want == 401 && resp.Header.Get("WWW-Authenticate") == "" ||
			step.want == 429 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("try %d: %+v, want %d", i+1, resp, step.want)
		}
	}
	if n := tries.Load(); n != 6 {
		t.Errorf("%d tries reach the app", n)
	}
}
