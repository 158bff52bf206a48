package engine

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// fresh is CL.THROTTLE's reply to the first call of a key with 15 30 60.
const fresh = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"

// decides fails the test unless a celld decides by its engine. key must be unused.
func decides(t *testing.T, srv *harness.Server, key string) {
	t.Helper()
	if got := harness.Dial(t, srv.Addr).Do("CL.THROTTLE", key, "15", "30", "60"); got != fresh {
		t.Errorf("CL.THROTTLE: %q", got)
	}
}

// doesNotStart fails the test unless celld ends with this code and one line that contains these words, and not the password s3cret.
func doesNotStart(t *testing.T, wantCode int, words string, env []string, args ...string) {
	t.Helper()
	var stderr string
	var code int
	for range 5 { // an engine that a loaded machine keeps from answering is away, and celld starts
		_, stderr, code = harness.RunToEnd(t, env, append([]string{"--port", "0"}, args...)...)
		if !strings.Contains(stderr, "has not answered in time") {
			break
		}
	}
	if code != wantCode || !strings.Contains(stderr, words) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "s3cret") {
		t.Errorf("%q: exit code %d, want %d and %q, and no password:\n%s", args, code, wantCode, words, stderr)
	}
}

// ready runs celld ready for a server, and returns what it says on stdout and stderr.
func ready(t *testing.T, srv *harness.Server) (said string, code int) {
	t.Helper()
	host, port, _ := net.SplitHostPort(srv.Addr)
	out, errs, code := harness.RunToEnd(t, nil, "ready", "--bind", host, "--port", port)
	return out + errs, code
}

// TestStorePassword gives the password in each way, and looks for it where others could see it.
func TestStorePassword(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t, "--requirepass", "s3cret/ @")
	host := strings.TrimPrefix(f.URL, "redis://")
	file, wrong := filepath.Join(t.TempDir(), "right"), filepath.Join(t.TempDir(), "wrong")
	celldtest.WriteFile(t, "s3cret/ @\n", file)
	celldtest.WriteFile(t, "s3cret/ @ \n", wrong)
	for name, spec := range map[string]harness.Spec{
		"url":         {Flags: []string{"--store", "redis://:s3cret%2F%20%40@" + host}},
		"flag":        {Flags: []string{"--store", f.URL, "--store-password", "s3cret/ @", "--store-username", "default"}},
		"file":        {Flags: []string{"--store", f.URL, "--store-password-file", file}},
		"environment": {Env: []string{"CELLD_STORE=" + f.URL, "CELLD_STORE_PASSWORD=s3cret/ @"}},
	} {
		srv := spec.Start(t)
		decides(t, srv, name)
		c := harness.Dial(t, srv.Addr)
		for _, shown := range []string{c.Do("CONFIG", "GET", "*"), c.Do("INFO", "everything"), srv.Log.String()} {
			if strings.Contains(shown, "s3cret") || !strings.Contains(shown, "redis://"+host) {
				t.Errorf("%s: the password, or not the engine, is in %s", name, shown)
			}
		}
	}
	doesNotStart(t, 1, "refuses the user or password", nil, "--store", "redis://:s3cretx@"+host)
	doesNotStart(t, 1, "refuses the user or password", nil, "--store", "redis://nobody:s3cret%2F%20%40@"+host)
	doesNotStart(t, 1, "refuses the user or password", nil, "--store", f.URL, "--store-password-file", wrong)
	doesNotStart(t, 1, "wants a password", nil, "--store", f.URL)
}

// TestStoreUsage holds mistakes in the settings to one line and exit code 2.
func TestStoreUsage(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	const url = "redis://:s3cret@127.0.0.1:1"
	for _, test := range []struct {
		words string
		args  []string
	}{
		{"%2F", []string{"--store", "redis://:s3cret/x@h"}},
		{"port", []string{"--store", "redis://:s3cret"}},
		{"must start with redis://", []string{"--store", "s3cret"}},
		{"--appendonly", []string{"--store", url, "--appendonly", "yes"}},
		{"--save", []string{"--store", url, "--save", "60 1"}},
		{"rediss://", []string{"--store", url, "--store-tls-ca-cert-file", missing}},
		{"together", []string{"--store", "rediss://h", "--store-tls-cert-file", missing}},
		{"both set", []string{"--store", url, "--store-password", "s3cret", "--store-password-file", missing}},
		{"read the engine's password", []string{"--store", url, "--store-password-file", missing}},
		{"such as 300ms", []string{"--store", url, "--store-timeout", "300"}},
		{"between 1ms and 1m0s", []string{"--store", url, "--store-timeout", "2m"}},
	} {
		doesNotStart(t, 2, test.words, nil, test.args...)
	}
	doesNotStart(t, 2, "port", []string{"CELLD_STORE=redis://:s3cret"})
	doesNotStart(t, 1, "CA certificates", nil, "--store", "rediss://h", "--store-tls-ca-cert-file", missing)
}

// TestStoreUnixSocket keeps limits on an engine behind a unix socket, in a database of its own.
func TestStoreUnixSocket(t *testing.T) {
	t.Parallel()
	addr := celldtest.StartRedis(t, "--requirepass", "pw")
	srv := harness.Start(t, "--store", "unix://:pw@"+strings.TrimPrefix(addr, "unix:")+"?db=3")
	decides(t, srv, "k")
	c := harness.Dial(t, addr)
	c.Do("AUTH", "pw")
	c.Do("SELECT", "3")
	if got := c.Do("EXISTS", "k"); got != ":1\r\n" {
		t.Errorf("in database 3: %q", got)
	}
	doesNotStart(t, 1, "databases", nil, "--store", "unix://:pw@"+strings.TrimPrefix(addr, "unix:")+"?db=16")
}

// TestPoliciesBeforeTheEngineAnswers: nobody says that there is no policy while it is not known. Whatever --store-failure is, it cannot
// decide under a limit that is not known. Those of --policies are.
func TestPoliciesBeforeTheEngineAnswers(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t)
	file := filepath.Join(t.TempDir(), "policies")
	celldtest.WriteFile(t, "file 1/1h", file)
	c := harness.Dial(t, harness.Start(t, "--store", f.URL).Addr)
	if got := c.Do("CL.POLICY", "SET", "api", "3/1h"); got != ":1\r\n" {
		t.Fatalf("%q", got)
	}
	f.Nodes[0].Kill()
	var all []*harness.Conn
	for mode, want := range map[string]string{
		"error": "-STOREDOWN ", "allow": "*7\r\n:0\r\n:1\r\n:1\r\n", "deny": "*7\r\n:1\r\n:1\r\n:0\r\n",
		"local": "*7\r\n:0\r\n:1\r\n:0\r\n",
	} {
		c := harness.Dial(t, harness.Start(t, "--store", f.URL, "--store-failure", mode, "--policies", file).Addr)
		all = append(all, c)
		for _, command := range []string{
			"CL.TAKE k @api", "CL.THROTTLE k @api", "CL.MTAKE 2 k @file l @api", "CL.TAKE k @nosuch", "CL.GIVE k @api 1",
			"CL.POLICY GET api", "CL.STATS api", "CL.TOP 1 api",
		} {
			if got := c.Do(strings.Fields(command)...); !strings.HasPrefix(got, "-STOREDOWN ") {
				t.Errorf("%s: %s: %q", mode, command, got)
			}
		}
		if got := c.Do("CL.TAKE", "k", "@file"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: a policy of the file: %q", mode, got)
		}
		if got := c.Do("CL.POLICY", "GET", "file"); got != "$4\r\n1/1h\r\n" {
			t.Errorf("%s: %q", mode, got)
		}
	}
	f.Nodes[0].Restart()
	for _, c := range all {
		celldtest.Eventually(t, "the policies are known", func() bool {
			return strings.HasPrefix(c.Do("CL.TAKE", "k", "@nosuch"), "-NOPOLICY ")
		})
		if got := c.Do("CL.POLICY", "GET", "nosuch"); got != "$-1\r\n" {
			t.Errorf("%q", got)
		}
	}
}

// TestStoreAwayAtStart starts celld before its engine.
func TestStoreAwayAtStart(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t)
	f.Nodes[0].Kill()
	srv := harness.Start(t, "--store", f.URL)
	got := harness.Dial(t, srv.Addr).Do("CL.THROTTLE", "k", "15", "30", "60")
	if !strings.HasPrefix(got, "-STOREDOWN ") || strings.Contains(got, "counted") {
		t.Errorf("without an engine: %q", got)
	}
	if said, code := ready(t, srv); code != 1 || !strings.Contains(said, "the engine is away") || strings.Count(said, "\n") != 1 {
		t.Errorf("ready exits with %d without an engine, and says %q", code, said)
	}
	f.Nodes[0].Restart()
	celldtest.Eventually(t, "celld is ready", func() bool { _, code := ready(t, srv); return code == 0 })
	decides(t, srv, "k")
	f.Nodes[0].Kill()
	celldtest.Eventually(t, "celld is not ready", func() bool { _, code := ready(t, srv); return code == 1 })
	f.Nodes[0].Restart()
	celldtest.Eventually(t, "celld is ready again", func() bool { _, code := ready(t, srv); return code == 0 })
}

// TestStoreChecks looks for what celld says of an engine at the start.
func TestStoreChecks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Redis 7.0.", `"is":"master"`, "noeviction, no maxmemory", "a restart of the engine resets all limits", "give or take"}},
		{[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, []string{"allkeys-lru", "resets limits when its memory is full"}},
		{[]string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, []string{"volatile-ttl", "resets limits when its memory is full"}},
		{[]string{"--appendonly", "yes"}, []string{"append-only file"}},
		{[]string{"--save", "60 1"}, []string{`"is":"snapshots"`}},
		{[]string{"--rename-command", "CONFIG", "", "--rename-command", "INFO", ""}, []string{`"msg":"the engine's version"`, `"is":"not known"`}},
		{[]string{"--replicaof", "127.0.0.1", "1"}, []string{`"is":"slave"`, "a replica takes no writes"}},
	} {
		url := ""
		if strings.Contains(strings.Join(test.args, " "), "rename") { // the harness asks for INFO
			url = "unix://" + strings.TrimPrefix(celldtest.StartRedis(t, test.args...), "unix:")
		} else {
			url = engines.StartEngine(t, test.args...).URL
		}
		srv := harness.Start(t, "--store", url)
		celldtest.Eventually(t, "celld has checked its engine", func() bool {
			return strings.Contains(srv.Log.String(), "the engine's clock")
		})
		for _, want := range test.want {
			if !strings.Contains(srv.Log.String(), want) {
				t.Errorf("%q: the log lacks %s:\n%s", test.args, want, srv.Log)
			}
		}
	}
}
