package server

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// files makes a directory with these contents.
func files(t *testing.T, contents map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range contents {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		celldtest.WriteFile(t, text, dir, name)
	}
	return dir
}

// TestCheckOK checks settings of all kinds beside a celld that uses the same ones. Nothing is written.
func TestCheckOK(t *testing.T) {
	t.Parallel()
	authority := celldtest.NewAuthority(t)
	cert, key := authority.Sign("celld", &x509.Certificate{})
	dir := files(t, map[string]string{"users.acl": "user app on >p ~* +get", "policies": "rule deny bad:* # who\napi 1/60m 10/1d",
		"token": "secret\n", "password": "sesame\n", "level": "debug"})
	flags := []string{
		"--port", harness.FreePort(t), "--tls-port", harness.FreePort(t), "--tls-auth-clients", "no", "--tls-cert-file", cert,
		"--tls-key-file", key, "--aclfile", dir + "/users.acl", "--policies", dir + "/policies",
		"--http-bind", "127.0.0.1:" + harness.FreePort(t), "--http-token-file", dir + "/token", "--requirepass-file", dir + "/password",
		"--loglevel-file", dir + "/level", "--dir", dir, "--appendonly", "yes", "--save", "3600 1",
	}
	ok := func(flags ...string) {
		t.Helper()
		plan := ""
		if slices.Contains(flags, "--policies") {
			plan = "policy api 1/1h 10/1d\nrule deny bad:*\n"
		}
		out, stderr, code := harness.RunToEnd(t, []string{"CELLD_MAX_KEYS=5"}, append(flags, "--check")...)
		if code != 0 || out != plan+"ok: a start can use these settings and files\n" || stderr != "" {
			t.Errorf("%q: %d, %q, %q", flags, code, out, stderr)
		}
	}
	before, _ := os.ReadDir(dir)
	ok(flags...)
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("files were made: %v", after)
	}
	srv := harness.Start(t, flags...)
	c := harness.Dial(t, srv.Addr)
	c.Do("AUTH", "sesame")
	c.Throttle("k", "1", "1", "60")
	c.Do("BGREWRITEAOF")
	c.Do("SAVE")
	ok(flags...)
	srv.Stop()
	ok(flags...)
	ok()
	ok("--dir", dir, "--save", "3600 1")
	ok("--store", "redis://127.0.0.1:1") // which is away
}

// TestCheckWrong looks for one line for each thing that is wrong, and for the same lines at the start.
func TestCheckWrong(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"users.acl": "user app on >acl-secret +nosuch", "policies": "api 1/never", "empty": "\n", "level": "loud",
		"cert.pem": "no certificate", "key.pem": "no key",
	})
	for _, test := range []struct {
		env, args, names []string
		code             int
	}{
		{nil, []string{"--port", "x", "--max-keys", "0", "--aclfile", dir + "/users.acl", "--policies", dir + "/none"},
			[]string{"port", "max-keys", "none: no such file", "users.acl:1"}, 2},
		{[]string{"CELLD_PORT=x", "CELLD_NOSUCH=1"}, nil, []string{"CELLD_PORT", "CELLD_NOSUCH"}, 2},
		{nil, []string{"--nosuch"}, []string{"nosuch"}, 2},
		{nil, []string{"--policies", dir + "/policies", "--http-bind", "*:0", "--requirepass-file", dir + "/empty",
			"--loglevel-file", dir + "/level"},
			[]string{"policies:1", "--http-token-file", "loglevel", "empty is empty"}, 2},
		{nil, []string{"--tls-port", "1", "--tls-cert-file", dir + "/cert.pem", "--tls-key-file", dir + "/key.pem", "--tls-auth-clients", "no"}, []string{"cert.pem"}, 2},
		{nil, []string{"--store", "http://store-secret@host"}, []string{"--store"}, 2},
		{nil, []string{"--store", "redis://host", "--appendonly", "yes", "--loglevel-file", dir + "/none"}, []string{"--appendonly must be no", "none"}, 2},
	} {
		wrong := func(args ...string) {
			t.Helper()
			out, stderr, code := harness.RunToEnd(t, test.env, args...)
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			if code != test.code || out != "" || len(lines) != len(test.names) || strings.Contains(stderr, "-secret") {
				t.Errorf("%q: %d, %q, %q", args, code, out, stderr)
				return
			}
			for i, name := range test.names {
				if !strings.HasPrefix(lines[i], "celld: ") || !strings.Contains(lines[i], name) {
					t.Errorf("%q: %q has no %q", args, lines[i], name)
				}
			}
		}
		wrong(append([]string{"--check"}, test.args...)...)
		wrong(test.args...)
	}
	if _, stderr, code := harness.RunToEnd(t, nil, "--check", "ping"); code != 2 || !strings.Contains(stderr, `"ping"`) {
		t.Errorf("%d, %q", code, stderr)
	}
	_, stderr, code := harness.RunToEnd(t, []string{"CELLD_CHECK=true"}, "--check")
	if code != 2 || !strings.Contains(stderr, "CELLD_CHECK") {
		t.Errorf("%d, %q", code, stderr)
	}
}

// TestCheckOfCertificates finds certificates that clients refuse, and warns of one that ends soon. A start warns of all of them, and
// serves.
func TestCheckOfCertificates(t *testing.T) {
	t.Parallel()
	authority := celldtest.NewAuthority(t)
	for _, test := range []struct {
		ends time.Duration // it begins 48 hours before
		code int
		says string
	}{
		{-time.Hour, 1, "clients refuse the certificate"}, {72 * time.Hour, 1, "clients refuse the certificate"},
		{time.Hour, 0, "the certificate ends soon"}, {24 * time.Hour, 0, ""},
	} {
		ends := time.Now().Add(test.ends).UTC()
		edge := ends // that it is beyond
		if test.ends > 48*time.Hour {
			edge = ends.Add(-48 * time.Hour)
		}
		cert, key := authority.Sign("celld", &x509.Certificate{NotAfter: ends})
		flags := []string{"--tls-port", harness.FreePort(t), "--tls-auth-clients", "no", "--tls-cert-file", cert, "--tls-key-file", key}
		out, stderr, code := harness.RunToEnd(t, nil, append(flags, "--check")...)
		if code != test.code || (out == "") != (code != 0) || !strings.Contains(stderr, test.says) || test.says == "" && stderr != "" ||
			test.says != "" && (strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, cert) ||
				!strings.Contains(stderr, edge.Format(time.RFC3339))) {
			t.Errorf("ends in %v: %d, %q, %q", test.ends, code, out, stderr)
		}
		srv := harness.Start(t, flags...)
		log := srv.Log.String()
		if strings.Contains(log, `"WARN"`) != (test.says != "") || !strings.Contains(log, test.says) ||
			test.says != "" && !strings.Contains(log, ends.Format(time.RFC3339)) {
			t.Errorf("ends in %v: %s", test.ends, log)
		}
		srv.Stop()
		_, stderr, code = harness.RunToEnd(t, nil, "--check", "--store", "rediss://127.0.0.1:1", "--store-tls-cert-file", cert,
			"--store-tls-key-file", key)
		if code != test.code || code != 0 && !strings.Contains(stderr, "the engine refuses the certificate: "+cert) {
			t.Errorf("ends in %v, for an engine: %d, %q", test.ends, code, stderr)
		}
		serverCert, serverKey := authority.Sign("server", &x509.Certificate{})
		_, stderr, code = harness.RunToEnd(t, nil, "--check", "--tls-port", harness.FreePort(t), "--tls-ca-cert-file", authority.File,
			"--tls-cert-file", serverCert, "--tls-key-file", serverKey, "--tls-client-cert-file", cert, "--tls-client-key-file", key)
		if code != test.code ||
			code != 0 && !strings.Contains(stderr, "celld ready fails with the certificate of --tls-client-cert-file: "+cert) {
			t.Errorf("ends in %v, for probes: %d, %q", test.ends, code, stderr)
		}
	}
}

// TestCheckOfPipes waits for nobody who might write a FIFO, whichever setting names it.
func TestCheckOfPipes(t *testing.T) {
	t.Parallel()
	cert, key := celldtest.NewAuthority(t).Sign("celld", &x509.Certificate{})
	dir := files(t, map[string]string{"token": "secret", "appendonlydir/appendonly.aof.manifest": "file a.base.rdb seq 1 type b\n"})
	pipe := func(path string) string {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := pipe(dir + "/fifo")
	secure := []string{"--tls-port", harness.FreePort(t), "--tls-auth-clients", "no"}
	for _, flags := range [][]string{
		{"--aclfile", fifo}, {"--loglevel-file", fifo}, {"--policies", fifo}, {"--requirepass-file", fifo},
		{"--http-bind", "127.0.0.1:0", "--http-token-file", fifo},
		append(secure, "--tls-cert-file", fifo, "--tls-key-file", key),
		append(secure, "--tls-cert-file", cert, "--tls-key-file", fifo),
		append(secure, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", fifo),
		{"--store", "redis://127.0.0.1:1", "--store-password-file", fifo},
		{"--store", "rediss://127.0.0.1:1", "--store-tls-ca-cert-file", fifo},
		{"--store", "rediss://127.0.0.1:1", "--store-tls-cert-file", cert, "--store-tls-key-file", fifo},
		{"--save", "1 1", "--dir", filepath.Dir(pipe(files(t, nil) + "/dump.rdb"))},
		{"--appendonly", "yes", "--dir", filepath.Dir(pipe(files(t, nil) + "/appendonly.aof"))},
		{"--appendonly", "yes", "--dir", filepath.Dir(filepath.Dir(pipe(dir + "/appendonlydir/a.base.rdb")))},
	} {
		for _, args := range [][]string{append([]string{"--check"}, flags...), append([]string{"--port", "0"}, flags...)} {
			_, stderr, code := harness.RunToEnd(t, nil, args...)
			if code == 0 || strings.Count(stderr, "t is a pipe, not a regular file") != 1 {
				t.Errorf("%q: %d, %q", args, code, stderr)
			}
		}
	}
}

// TestCheckDataFiles looks at the first bytes of the files that the start reads. The start fails on the same ones, with the same exit code.
func TestCheckDataFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		contents map[string]string
		names    string
		flags    []string
	}{
		{map[string]string{"dump.rdb": "no snapshot"}, "it does not begin as an RDB file does", []string{"--save", "1 1"}},
		{map[string]string{"dump.rdb": ""}, "dump.rdb: damaged at byte 0", []string{"--save", "1 1"}},
		{map[string]string{"dump.rdb": "REDIS9999"}, "RDB version 9999 is newer", []string{"--save", "1 1"}},
		{map[string]string{"dump.rdb": "REDIS9999"}, "RDB version 9999 is newer", []string{"--appendonly", "yes"}},
		{map[string]string{"appendonly.aof": "no log\r\n"}, "appendonly.aof: damaged at byte 0", []string{"--appendonly", "yes"}},
		{map[string]string{"appendonly.aof": "REDIS9999"}, "RDB version 9999 is newer", []string{"--appendonly", "yes"}},
		{map[string]string{"appendonlydir/appendonly.aof.manifest": "file a.base.rdb seq 1 type b\n"}, "a.base.rdb, which appendonly.aof.manifest lists, is missing", []string{"--appendonly", "yes"}},
		{map[string]string{"other/x": ""}, "none", []string{"--save", "1 1", "--dir", "/none"}},
	} {
		dir := files(t, test.contents)
		args := append([]string{"--port", "0", "--dir", dir}, test.flags...)
		for _, args := range [][]string{append(args, "--check"), args} {
			_, stderr, code := harness.RunToEnd(t, nil, args...)
			if lines := strings.Split(stderr, "\n"); code != 1 || !strings.Contains(lines[len(lines)-2], test.names) {
				t.Errorf("%q: %d, %q", args, code, stderr)
			}
		}
	}
	dir := files(t, map[string]string{"dump.rdb": "no snapshot"})
	if out, stderr, code := harness.RunToEnd(t, nil, "--check", "--dir", dir); code != 0 {
		t.Errorf("files that no start reads: %d, %q, %q", code, out, stderr)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port := harness.HostPort(ln.Addr().String())
	if _, stderr, code := harness.RunToEnd(t, nil, "--check", "--port", port); code != 0 {
		t.Errorf("a port in use is no mistake of the settings: %d, %q", code, stderr)
	}
}
