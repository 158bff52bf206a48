package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// oneLine checks that celld ended with this code and said why in one line that names what is at fault.
func oneLine(t *testing.T, stderr string, code, wantCode int, names string) {
	t.Helper()
	if code != wantCode || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") || !strings.Contains(stderr, names) {
		t.Errorf("code %d and %q; want code %d and one line with %q", code, stderr, wantCode, names)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env, args []string
		names     string
	}{
		{nil, []string{"--nosuch"}, "nosuch"},
		{nil, []string{"--nosuch=1"}, "nosuch"},
		{nil, []string{"-q"}, "q"},
		{nil, []string{"serve"}, `"serve"`},
		{nil, []string{"help", "nosuch"}, `"nosuch"`},
		{nil, []string{"help", "ping", "more"}, `"more"`},
		{nil, []string{"nosuch", "--help"}, `"nosuch"`},
		{nil, []string{"version", "more"}, `"more"`},
		{nil, []string{"version", "-v", "more"}, `"more"`},
		{nil, []string{"-v"}, "-v"},
		{nil, []string{"ping", "-v"}, "-v"},
		{[]string{"CELLD_VERBOSE=true"}, nil, "CELLD_VERBOSE"},
		{nil, []string{"ping", "more"}, `"more"`},
		{nil, []string{"--port", "1", "ready", "more"}, `"more"`},
		{nil, []string{"PING"}, `"PING"`},
		{nil, []string{""}, `""`},
		{nil, []string{"--shutdown-delay", "-1"}, "shutdown-delay"},
		{nil, []string{"--shutdown-delay", "3601"}, "shutdown-delay"},
		{nil, []string{"--shutdown-delay", "5s"}, "shutdown-delay"},
		{nil, []string{"--port"}, "port"},
		{nil, []string{"--port", "x"}, "port"},
		{nil, []string{"--port", "65536"}, "port"},
		{nil, []string{"--port", "-1"}, "port"},
		{nil, []string{"--port", ""}, "port"},
		{nil, []string{"--bind", "-"}, "bind"},
		{nil, []string{"--bind", ""}, "bind"},
		{nil, []string{"--bind", ","}, "bind"},
		{nil, []string{"--bind", "127.0.0.1,,::1"}, "bind"},
		{nil, []string{"--bind", "127.0.0.1,"}, "bind"},
		{nil, []string{"--bind", "127.0.0.1 - ::1"}, "bind"},
		{nil, []string{"--bind", "--127.0.0.1"}, "bind"},
		{nil, []string{"--bind", "127.0.0.256"}, "bind"},
		{nil, []string{"--bind", "127.0.0.1:6379"}, "bind"},
		{nil, []string{"--bind", "[::1]"}, "bind"},
		{nil, []string{"--bind", "tcp://localhost"}, "bind"},
		{nil, []string{"--bind", "127.0.0.1", "--bind", "-127.0.0.1"}, "bind"},
		{nil, []string{"ping", "--bind", "-"}, "bind"},
		{[]string{"CELLD_BIND=-"}, nil, "CELLD_BIND"},
		{nil, []string{"--requirepass-file", ""}, "requirepass-file"},
		{nil, []string{"--dir", ""}, "dir"},
		{nil, []string{"--version=false", "serve"}, "serve"},
		{nil, []string{"--version=perhaps"}, "version"},
		{nil, []string{"--port", "0x10"}, "port"},
		{nil, []string{"--timeout", "1_0"}, "timeout"},
		{nil, []string{"--max-keys", "0"}, "max-keys"},
		{nil, []string{"--max-keys", "-5"}, "max-keys"},
		{nil, []string{"--maxclients", "0"}, "maxclients"},
		{nil, []string{"--maxmemory", "5 potatoes"}, "maxmemory"},
		{nil, []string{"--maxmemory-policy", "volatile-lru"}, "maxmemory-policy"},
		{nil, []string{"--protected-mode", "maybe"}, "protected-mode"},
		{nil, []string{"--timeout", "-1"}, "timeout"},
		{nil, []string{"--log-format", "xml"}, "log-format"},
		{nil, []string{"--loglevel", "loud"}, "loglevel"},
		{nil, []string{"--unixsocketperm", "999"}, "unixsocketperm"},
		{nil, []string{"--io-threads", "0"}, "io-threads"},
		{nil, []string{"--client-output-buffer-limit", "much"}, "client-output-buffer-limit"},
		{nil, []string{"--http-bind", "8080"}, "http-bind"},
		{nil, []string{"--http-bind", "127.0.0.1:http"}, "http-bind"},
		{nil, []string{"--http-bind", ":8080"}, "http-bind"},
		{nil, []string{"--http-bind", "*:0"}, "--http-token-file"},
		{nil, []string{"--http-bind", "0.0.0.0:0"}, "--http-token-file"},
		{nil, []string{"--http-bind", "[::]:0"}, "--http-token-file"},
		{nil, []string{"--http-bind", "127.0.0.1:0", "--http-token-file", "/nosuch/file"}, "/nosuch/file"},
		{nil, []string{"--http-bind", "127.0.0.1:0", "--http-token-file", "/dev/null"}, "/dev/null: it is a device, not a regular file"},
		{nil, []string{"--http-token-file", ""}, "http-token-file"},
		{nil, []string{"--http-max-connections", "0"}, "http-max-connections"},
		{nil, []string{"--trusted-proxies", "10.0.0.0/33"}, "trusted-proxies"},
		{nil, []string{"--trusted-proxies", "10.0.0.1,proxy"}, "'proxy'"},
		{nil, []string{"ping", "--nosuch"}, "nosuch"},
		{[]string{"CELLD_NOSUCH=1"}, nil, "CELLD_NOSUCH"},
		{[]string{"CELLD_MAXKEYS=1"}, nil, "CELLD_MAXKEYS"},
		{[]string{"CELLD_PORT=x"}, nil, "CELLD_PORT"},
		{[]string{"CELLD_MAX_KEYS=0"}, nil, "CELLD_MAX_KEYS"},
	} {
		stdout, stderr, code := harness.RunToEnd(t, test.env, test.args...)
		oneLine(t, stderr, code, 2, test.names)
		if stdout != "" || t.Failed() {
			t.Errorf("%q %q prints %q", test.env, test.args, stdout)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := harness.RunToEnd(t, nil, "--version")
	if code != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "celld") {
		t.Errorf("--version: %d, %q, %q", code, stdout, stderr)
	}
	same := func(env []string, want string, args ...string) {
		t.Helper()
		if stdout, stderr, code := harness.RunToEnd(t, env, args...); code != 0 || stderr != "" || stdout != want {
			t.Errorf("celld %q: %d, %q, %q; want %q", args, code, stdout, stderr, want)
		}
	}
	wrong := []string{"CELLD_NOSUCH=1"} // which --help is there to help with
	same(wrong, stdout, "version")
	same(wrong, stdout, "--version")
	stdout, stderr, code = harness.RunToEnd(t, nil, "--help")
	if code != 0 || stderr != "" {
		t.Errorf("--help: %d, %q", code, stderr)
	}
	same(wrong, stdout, "help")
	same(nil, stdout, "-h")
	for _, name := range []string{"ping", "ready", "help", "version"} {
		one, stderr, code := harness.RunToEnd(t, wrong, "help", name)
		if code != 0 || stderr != "" || !strings.HasPrefix(one, "Usage: celld "+name) || !strings.Contains(stdout, "\n  celld "+name+" ") {
			t.Errorf("celld help %s: %d, %q, %q", name, code, one, stderr)
		}
		if name != "help" {
			same(nil, one, name, "--help")
		}
	}
	for _, flag := range allFlags {
		if !strings.Contains(stdout, "--"+flag+" ") {
			t.Errorf("--help does not know --%s", flag)
		}
	}
	for line := range strings.Lines(stdout) {
		if len(line) > 121 {
			t.Errorf("--help has a line of %d characters: %s", len(line), line)
		}
	}
}

// allFlags are the flags that serve takes.
var allFlags = []string{
	"port", "bind", "unixsocket", "unixsocketperm", "requirepass", "requirepass-file", "maxclients", "timeout", "tcp-keepalive", "max-keys",
	"maxmemory", "maxmemory-policy", "protected-mode", "proto-max-bulk-len", "client-query-buffer-limit", "client-output-buffer-limit",
	"slowlog-log-slower-than", "slowlog-max-len", "io-threads", "shutdown-timeout", "shutdown-delay", "log-format", "loglevel",
}

// TestEnvironment sets each flag by its variable and sees it arrive.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir := harness.SocketDir(t)
	passwordFile := filepath.Join(dir, "password")
	if err := os.WriteFile(passwordFile, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	values := map[string]string{ // a flag and a value that is not its default
		"port": port, "bind": "127.0.0.1", "unixsocket": filepath.Join(dir, "s"), "unixsocketperm": "700", "requirepass-file": passwordFile,
		"maxclients": "77", "timeout": "78", "tcp-keepalive": "79", "max-keys": "80", "maxmemory": "104857600",
		"maxmemory-policy": "noeviction", "protected-mode": "no", "proto-max-bulk-len": "131072",
		"client-query-buffer-limit": "2097152", "client-output-buffer-limit": "3145728", "slowlog-log-slower-than": "81",
		"slowlog-max-len": "82", "io-threads": "2", "shutdown-timeout": "3", "shutdown-delay": "1", "log-format": "json",
		"loglevel": "debug",
	}
	var env []string
	for _, flag := range allFlags {
		if value, ok := values[flag]; ok {
			env = append(env, "CELLD_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))+"="+value)
		} else if flag != "requirepass" {
			t.Errorf("no value for --%s", flag)
		}
	}
	srv := harness.Spec{Wrap: []string{"/bin/sh", "-c", `exec "$0"`}, Env: env}.Start(t) // which drops the flags
	c := harness.Dial(t, "127.0.0.1:"+port)
	if got := c.Do("AUTH", "sesame"); got != "+OK\r\n" {
		t.Fatalf("AUTH: %q", got)
	}
	for flag, value := range values {
		if flag == "requirepass-file" {
			continue // CONFIG need not show where the password is
		}
		if got := harness.Pairs(t, c.Do("CONFIG", "GET", flag))[flag]; got != value && flag != "client-output-buffer-limit" {
			t.Errorf("CONFIG GET %s: %q, want %q", flag, got, value)
		}
	}
	if info, err := os.Stat(srv.UnixPath()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if _, stderr, code := harness.RunToEnd(t, env, "ping"); code != 0 || stderr != "" {
		t.Errorf("celld ping with the same environment: %d, %q", code, stderr)
	}
	over := harness.Spec{Env: []string{"CELLD_MAX_KEYS=5", "CELLD_PORT=1"}, Flags: []string{"--max-keys", "6"}}.Start(t)
	if got := harness.Pairs(t, harness.Dial(t, over.Addr).Do("CONFIG", "GET", "max-keys"))["max-keys"]; got != "6" {
		t.Errorf("a flag beside its variable: %s", got)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--requirepass", "sesame")
	_, port := harness.HostPort(srv.Addr)
	stdout, stderr, code := harness.RunToEnd(t, []string{"CELLD_REQUIREPASS=sesame"}, "ping", "--port", port)
	if code != 0 || stderr != "" {
		t.Errorf("celld ping: %d, %q, %q", code, stdout, stderr)
	}
	stdout, stderr, code = harness.RunToEnd(t, nil, "ping", "--port", port, "--requirepass", "sesame", "--bind", "0.0.0.0")
	if code != 0 || stderr != "" {
		t.Errorf("celld ping --bind 0.0.0.0, as the server has it: %d, %q, %q", code, stdout, stderr)
	}
	stdout, stderr, code = harness.RunToEnd(t, nil, "ready", "--port", port, "--requirepass", "sesame")
	if code != 0 || stdout+stderr != "" {
		t.Errorf("celld ready: %d, %q, %q", code, stdout, stderr)
	}
	// It lives, and CONFIG SET may have given it another password.
	for _, password := range []string{"wrong", ""} {
		stdout, stderr, code := harness.RunToEnd(t, nil, "ping", "--port", port, "--requirepass", password)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "-") {
			t.Errorf("celld ping with the password %q: %d, %q, %q", password, code, stdout, stderr)
		}
		_, stderr, code = harness.RunToEnd(t, nil, "ready", "--port", port, "--requirepass", password)
		oneLine(t, stderr, code, 1, map[string]string{"wrong": "WRONGPASS", "": "NOAUTH"}[password])
	}
	_, stderr, code = harness.RunToEnd(t, nil, "ping", "--port", port, "--requirepass-file", "/nosuch/file")
	oneLine(t, stderr, code, 2, "/nosuch/file")
	_, stderr, code = harness.RunToEnd(t, nil, "ready", "--port", harness.FreePort(t))
	oneLine(t, stderr, code, 1, "refused")
	_, stderr, code = harness.RunToEnd(t, nil, "ping", "--port", harness.FreePort(t))
	oneLine(t, stderr, code, 1, "refused")
	_, stderr, code = harness.RunToEnd(t, nil, "ping", "--unixsocket", "/nosuch/socket", "--port", "0")
	oneLine(t, stderr, code, 1, "/nosuch/socket")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, as a server that hangs does, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port = harness.HostPort(silent.Addr().String())
	_, stderr, code = harness.RunToEnd(t, nil, "ping", "--port", port)
	oneLine(t, stderr, code, 1, "")
}

// TestPingAsksAllAddresses finds a server by any address that it listens on, in whatever order they are given.
func TestPingAsksAllAddresses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(harness.SocketDir(t), "s")
	srv := harness.Start(t, "--bind", "-192.0.2.1,127.0.0.1", "--unixsocket", path, "--port", harness.FreePort(t))
	_, port := harness.HostPort(srv.Addr)
	for _, command := range []string{"ping", "ready"} {
		for _, flags := range [][]string{
			{"--bind", "-192.0.2.1,127.0.0.1"}, {"--bind", "127.0.0.1 -192.0.2.1"}, {"--bind", "*"}, {"--bind", "-::* 0.0.0.0"},
			{"--bind", "-::1", "--bind", "localhost"}, {"--unixsocket", path}, {"--unixsocket", "/nosuch/socket"},
		} {
			_, stderr, code := harness.RunToEnd(t, nil, append([]string{command, "--port", port}, flags...)...)
			if code != 0 || stderr != "" {
				t.Errorf("celld %s %q: %d, %q", command, flags, code, stderr)
			}
		}
		for _, test := range []struct{ names, bind, port string }{
			{"192.0.2.1", "-192.0.2.1", port}, {"127.0.0.3", "-192.0.2.1,127.0.0.3", port}, {"port 0", "127.0.0.1", "0"},
		} {
			_, stderr, code := harness.RunToEnd(t, nil, command, "--port", test.port, "--bind", test.bind)
			oneLine(t, stderr, code, 1, test.names)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	_, port := harness.HostPort(srv.Addr)
	_, stderr, code := harness.RunToEnd(t, nil, "--port", port)
	oneLine(t, stderr, code, 1, "--port: listen on ")
	if !strings.Contains(stderr, port+": address already in use") {
		t.Errorf("%q does not name port %s", stderr, port)
	}
	srv.Alive()
}

// TestKubernetesService sets the variables that Kubernetes sets in every pod beside a Service named celld: they are no settings.
func TestKubernetesService(t *testing.T) {
	t.Parallel()
	harness.Spec{Env: []string{
		"CELLD_SERVICE_HOST=10.0.0.1", "CELLD_SERVICE_PORT=6379", "CELLD_SERVICE_PORT_RESP=6379", "CELLD_PORT=tcp://10.0.0.1:6379",
		"CELLD_PORT_6379_TCP=tcp://10.0.0.1:6379", "CELLD_PORT_6379_TCP_ADDR=10.0.0.1", "CELLD_PORT_6379_TCP_PORT=6379",
		"CELLD_PORT_6379_TCP_PROTO=tcp",
	}}.Start(t).Alive()
}

// TestStartLine sees what the start line tells an operator.
func TestStartLine(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--max-keys", "12345")
	line := srv.Log.String()
	for _, want := range []string{`"msg":"ready"`, `"addr":["` + srv.Addr + `"`, `"pid":`, "12345"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if strings.Contains(line, "not_ready_because") {
		t.Error(line)
	}
	away := harness.Start(t, "--store", "redis://127.0.0.1:"+harness.FreePort(t))
	away.Logs(`"not_ready_because":"the engine is away: `) // which celld ready says, too
}
