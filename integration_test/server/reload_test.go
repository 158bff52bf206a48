package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// reload sends SIGHUP, waits until celld is done with it, and returns what it has logged about it.
func reload(srv *harness.Server) string {
	srv.T.Helper()
	before := srv.Log.String()
	srv.Cmd.Process.Signal(syscall.SIGHUP)
	return awaitReload(srv, before)
}

func awaitReload(srv *harness.Server, before string) (said string) {
	srv.T.Helper()
	celldtest.Eventually(srv.T, "it reloads", func() bool {
		said = srv.Log.String()[len(before):]
		return strings.Contains(said, `"msg":"reloaded"`) || strings.Contains(said, `"msg":"there is nothing to reload`)
	})
	return said
}

// says fails the test unless a log has all of these.
func says(t *testing.T, log string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
}

// reloaded is a celld with all files that SIGHUP reloads.
type reloaded struct {
	*harness.Server
	dir       string
	authority *celldtest.Authority
	tlsAddr   string
}

func (r *reloaded) path(name string) string { return filepath.Join(r.dir, name) }

// put replaces a file as a whole.
func (r *reloaded) put(name, text string) {
	r.T.Helper()
	celldtest.WriteFile(r.T, text, r.path(name+".new"))
	if err := os.Rename(r.path(name+".new"), r.path(name)); err != nil {
		r.T.Fatal(err)
	}
}

// certificate puts a new certificate for a name.
func (r *reloaded) certificate(name string) {
	r.T.Helper()
	cert, key := r.authority.Sign(name, &x509.Certificate{DNSNames: []string{name}})
	r.put("celld.crt", celldtest.ReadFile(r.T, cert))
	r.put("celld.key", celldtest.ReadFile(r.T, key))
}

// serverName is the name in the certificate that celld shows now.
func (r *reloaded) serverName() string {
	r.T.Helper()
	conn, err := tls.Dial("tcp", r.tlsAddr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		r.T.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// as is a connection of a user.
func (r *reloaded) as(user, password string) *harness.Conn {
	r.T.Helper()
	c := harness.Dial(r.T, r.Addr)
	if got := c.Do("AUTH", user, password); got != "+OK\r\n" {
		r.T.Fatalf("AUTH %s: %q", user, got)
	}
	return c
}

func startReloaded(t *testing.T, flags ...string) *reloaded {
	t.Helper()
	r := &reloaded{dir: t.TempDir(), authority: celldtest.NewAuthority(t)}
	r.Server = &harness.Server{T: t} // for put
	r.certificate("first")
	r.put("users.acl", "user default on nopass ~* +@all\nuser stays on >stays-secret ~* +@all\nuser changes on >changes-secret ~* +@all\nuser goes on >goes-secret ~* +@all\n")
	r.put("policies", "api 2/1h\nold 1/1h\n")
	r.put("loglevel", "notice\n")
	port := harness.FreePort(t)
	r.Server = harness.Start(t, append([]string{
		"--port", harness.FreePort(t), "--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file", r.path("celld.crt"),
		"--tls-key-file", r.path("celld.key"), "--aclfile", r.path("users.acl"), "--policies", r.path("policies"),
		"--loglevel-file", r.path("loglevel"), "--watch", "no",
	}, flags...)...)
	r.tlsAddr = "127.0.0.1:" + port
	return r
}

// TestReload changes all files that SIGHUP reloads, then each into a bad one.
func TestReload(t *testing.T) {
	t.Parallel()
	r := startReloaded(t)
	if said := reload(r.Server); strings.Contains(said, "a file is") {
		t.Errorf("nothing has changed:\n%s", said)
	}
	stays, changes := r.as("stays", "stays-secret"), r.as("changes", "changes-secret")
	stays.Do("CL.TAKE", "k", "@api")
	r.certificate("second")
	r.put("users.acl", "user default on nopass ~* +@all\nuser stays on >stays-secret ~* +@all\nuser changes on >changes-secret ~* +ping\nuser comes on >comes-secret ~* +@all\n")
	r.put("policies", "api 5/1h\nnew 1/1h\n")
	r.put("loglevel", "verbose")
	said := reload(r.Server)
	says(t, said,
		`"setting":"tls-cert-file"`, `"not_after":`,
		`"setting":"aclfile","file":"`+r.path("users.acl")+`","added":["comes"],"changed":["changes"],"removed":["goes"]}`,
		`"setting":"policies","file":"`+r.path("policies")+`","added":["new"],"changed":["api"],"still_in_force":["old"]}`,
		`"setting":"loglevel-file","file":"`+r.path("loglevel")+`","value":"verbose"}`,
		`"msg":"reloaded"`)
	if n := strings.Count(said, "a file is taken"); n != 4 {
		t.Errorf("%d lines:\n%s", n, said)
	}
	changes.Closed()
	got := r.as("comes", "comes-secret").Do("CL.POLICY", "LIST")
	if got != "*6\r\n$3\r\napi\r\n$4\r\n5/1h\r\n$3\r\nnew\r\n$4\r\n1/1h\r\n$3\r\nold\r\n$4\r\n1/1h\r\n" {
		t.Errorf("the policies: %q", got)
	}
	if got := stays.Do("CL.TAKE", "k", "@api", "PEEK"); !strings.Contains(got, ":5\r\n:4\r\n") { // one was taken
		t.Errorf("what is left of 5: %q", got)
	}
	if got := stays.Do("CONFIG", "GET", "loglevel"); !strings.Contains(got, "verbose") {
		t.Errorf("%q", got)
	}
	if name := r.serverName(); name != "second" {
		t.Errorf("the certificate is %s", name)
	}

	for _, bad := range []struct {
		file, text, setting, why string
	}{
		{"celld.key", "no key", "tls-cert-file", r.path("celld.key")},
		{"users.acl", "user a on >bad-secret +nosuch", "aclfile", "users.acl:1"},
		{"policies", "api 1/1h\napi 2/1h\n", "policies", "policies:2"},
		{"policies", "api 1/1h\na: 1/1h\nb 1\n", "policies", `"more_mistakes":1`},
		{"loglevel", "loud bad-secret", "loglevel-file", "must be one of"},
	} {
		good := celldtest.ReadFile(t, r.path(bad.file))
		r.put(bad.file, bad.text)
		for range 2 { // it is logged at once, each time
			said := reload(r.Server)
			says(t, said, `"msg":"a file is refused, and what was read before stays","setting":"`+bad.setting+`"`, bad.why,
				`"failed":"`+bad.setting+`"`)
			if strings.Count(said, "what was read before stays") != 1 || strings.Contains(said, "a file is taken") {
				t.Errorf("%s", said)
			}
		}
		r.put(bad.file, good)
	}
	if stays.Do("PING") != "+PONG\r\n" || r.serverName() != "second" || stays.Do("CL.POLICY", "GET", "api") != "$4\r\n5/1h\r\n" {
		t.Error("a bad file has changed something")
	}
	for _, secret := range []string{"-secret", "PRIVATE"} {
		if strings.Contains(r.Log.String(), secret) {
			t.Errorf("the log has %s:\n%s", secret, r.Log)
		}
	}
}

// TestReloadOfOneGoodFile takes it up beside bad ones.
func TestReloadOfOneGoodFile(t *testing.T) {
	t.Parallel()
	r := startReloaded(t)
	for _, name := range []string{"celld.crt", "users.acl", "loglevel"} {
		r.put(name, "bad")
	}
	os.Remove(r.path("loglevel"))
	r.put("policies", "api 7/1h")
	says(t, reload(r.Server), `"setting":"policies","file":"`+r.path("policies")+`","changed":["api"],"still_in_force":["old"]`,
		`"failed":"tls-cert-file aclfile loglevel-file"`)
	if got := harness.Dial(t, r.Addr).Do("CL.POLICY", "GET", "api"); got != "$4\r\n7/1h\r\n" {
		t.Errorf("%q", got)
	}
}

// TestReloadOfPipes waits for nobody who might write them.
func TestReloadOfPipes(t *testing.T) {
	t.Parallel()
	r := startReloaded(t)
	for _, name := range []string{"celld.key", "users.acl", "policies", "loglevel"} {
		os.Remove(r.path(name))
		if err := syscall.Mkfifo(r.path(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := reload(r.Server)
	says(t, said, `"failed":"tls-cert-file aclfile policies loglevel-file"`)
	if n := strings.Count(said, "t is a pipe, not a regular file"); n != 4 {
		t.Errorf("%d lines:\n%s", n, said)
	}
	got := r.as("stays", "stays-secret").Do("ACL", "LOAD")
	if !strings.HasPrefix(got, "-ERR Error loading ACLs, opening file '"+r.path("users.acl")+"': It is a pipe") {
		t.Errorf("%q", got)
	}
}

// TestReloadWhileAScriptIsBusy: users and policies change when it has ended, as clients who change them meanwhile get -BUSY. Redis-server
// refuses CONFIG SET and ACL LOAD in the same way.
func TestReloadWhileAScriptIsBusy(t *testing.T) {
	t.Parallel()
	r := startReloaded(t, "--lua-time-limit", "1", "--shutdown-timeout", "1")
	runs, other := r.as("changes", "changes-secret"), harness.Dial(t, r.Addr)
	runs.Send(harness.Frame("EVAL", "while true do end", "0"))
	celldtest.Eventually(t, "it is busy", func() bool { return strings.HasPrefix(other.Do("ACL", "LOAD"), "-BUSY ") })
	r.put("users.acl", "user default on nopass ~* +@all\n")
	r.put("policies", "api 7/1h")
	r.put("loglevel", "verbose")
	before := r.Log.String()
	r.Cmd.Process.Signal(syscall.SIGHUP)
	r.Logs("new settings wait for the script that runs")
	if said := r.Log.String()[len(before):]; strings.Contains(said, "a file is") {
		t.Errorf("it did not wait:\n%s", said)
	}
	if got := other.Do("SCRIPT", "KILL"); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	says(t, awaitReload(r.Server, before), `"removed":["changes","goes","stays"]`, `"changed":["api"]`, `"value":"verbose"`)
	if got := other.Do("CL.POLICY", "GET", "api"); got != "$4\r\n7/1h\r\n" {
		t.Errorf("%q", got)
	}
	// One that nobody ends does not hold up a stop either.
	other.Send(harness.Frame("EVAL", "while true do end", "0"))
	another := harness.Dial(t, r.Addr)
	celldtest.Eventually(t, "it is busy", func() bool { return strings.HasPrefix(another.Do("PING"), "-BUSY ") })
	r.Cmd.Process.Signal(syscall.SIGHUP)
	r.Cmd.Process.Signal(syscall.SIGTERM)
	r.Wait(0)
}

// TestReloadOnAnEngine gives the policies to all instances on an engine, and users to one.
func TestReloadOnAnEngine(t *testing.T) {
	t.Parallel()
	engine := strings.Replace(celldtest.StartRedis(t), "unix:", "unix://", 1)
	r, other := startReloaded(t, "--store", engine), harness.Start(t, "--store", engine)
	r.put("policies", "api 9/1h\nnew 3/1h\nrule deny bad:*\n")
	r.put("users.acl", "user default on nopass ~* +@all\n")
	says(t, reload(r.Server), `"added":["new","rule deny bad:*"],"changed":["api"]`, `"removed":["changes","goes","stays"]`)
	for _, srv := range []*harness.Server{r.Server, other} {
		c := harness.Dial(t, srv.Addr)
		celldtest.Eventually(t, "the policies are there", func() bool {
			return c.Do("CL.POLICY", "GET", "api") == "$4\r\n9/1h\r\n" && c.Do("CL.POLICY", "GET", "new") == "$4\r\n3/1h\r\n" &&
				c.Do("CL.POLICY", "GET", "old") == "$4\r\n1/1h\r\n" && strings.Contains(c.Do("CL.RULE", "LIST"), "bad:*")
		})
	}
	harness.Dial(t, other.Addr).Do("CL.POLICY", "SET", "there", "4/1h")
	c := harness.Dial(t, r.Addr)
	celldtest.Eventually(t, "what another has set is saved", func() bool {
		return c.Do("CL.POLICY", "SAVE") == "+OK\r\n" &&
			celldtest.ReadFile(t, r.path("policies")) == "api 9/1h\nnew 3/1h\nrule deny bad:*\npolicy old 1/1h\npolicy there 4/1h\n"
	})
}

// TestPoliciesAreSaved changes policies and rules by commands and by the file, and saves them while others are served.
func TestPoliciesAreSaved(t *testing.T) {
	t.Parallel()
	r := startReloaded(t, "--io-threads", "1")
	r.put("policies", "# ours\napi 2/1h # half\npolicy rule 1/1m\n\nrule deny bad:*   # bots\n"+
		"rule allow ip: CIDR 10.0.0.0/8\n")
	says(t, reload(r.Server), `"added":["rule","rule allow ip: CIDR 10.0.0.0/8","rule deny bad:*"]`)
	c := harness.Dial(t, r.Addr)
	c.Play(
		harness.Step{"CL.TAKE bad:1 5/1h", "1 0 0 -1 0 0 0"}, harness.Step{"CL.TAKE k @api", "0 2 1 …"},
		harness.Step{"CL.POLICY SET api 4/1h 9/1d", ":1"}, harness.Step{"CL.POLICY DEL rule", ":1"},
		harness.Step{"CL.POLICY DEL old", ":1"},
		harness.Step{"CL.POLICY SET new 3/1h", ":1"}, harness.Step{"CL.RULE DEL ALLOW ip: CIDR 10.0.0.0/8", ":1"},
		harness.Step{"CL.RULE ADD ALLOW 'a b'", ":1"}, harness.Step{"CL.RULE ADD DENY soon EX 3600", ":1"},
	)
	release := r.slow("policies", celldtest.ReadFile(t, r.path("policies")))
	slow, began := harness.Dial(t, r.Addr), time.Now()
	slow.Send(append(harness.Frame("CL.POLICY", "SAVE"), harness.Frame("ECHO", "behind")...))
	celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(c.Do("CLIENT", "LIST"), "cmd=cl.policy|save") })
	if took := time.Since(began); took > 30*time.Second { // as long as the lease of the file, at most
		t.Errorf("others wait for the disk, too: for %v", took)
	}
	release()
	slow.Expect("+OK\r\n$6\r\nbehind\r\n")
	const saved = "# ours\napi 4/1h 9/1d # half\n\nrule deny bad:*   # bots\npolicy new 3/1h\nrule allow \"a b\"\n"
	if text := celldtest.ReadFile(t, r.path("policies")); text != saved {
		t.Errorf("it has\n%s", text)
	}
	says(t, reload(r.Server), `"msg":"reloaded","unchanged":"tls-cert-file aclfile policies loglevel-file"`)
	if got := c.Do("CL.TAKE", "k", "@api", "PEEK"); !strings.Contains(got, ":4\r\n:3\r\n") {
		t.Errorf("what is left of 4: %q", got)
	}
	const bad = saved + "rule deny k EX 5\n"
	r.put("policies", bad)
	c.Play(harness.Step{"CL.POLICY SAVE", "-ERR nothing is saved: read the policies: " + r.path("policies") +
		":7: EX is for CL.RULE ADD: a rule of the file has no end"})
	says(t, reload(r.Server), "policies:7: EX is for CL.RULE ADD", `"failed":"policies"`)
	if text := celldtest.ReadFile(t, r.path("policies")); text != bad {
		t.Errorf("it has\n%s", text)
	}
}

// TestReloadOfManyNames bounds the line of the log.
func TestReloadOfManyNames(t *testing.T) {
	t.Parallel()
	r := startReloaded(t)
	var text strings.Builder
	for range 5000 {
		text.WriteString("p" + strings.Repeat("x", text.Len()%7) + "-" + fmt.Sprint(text.Len()) + " 1/1h\n")
	}
	r.put("policies", text.String())
	says(t, reload(r.Server), `and 4980 more"]`)
}

// TestReloadOfNothing: a SIGHUP without files ends nothing.
func TestReloadOfNothing(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	says(t, reload(srv), "there is nothing to reload")
	srv.Alive()
}

// slow puts a file in place that celld cannot open before release is called, or 45 s have passed: a lease of this process holds it up.
func (r *reloaded) slow(name, text string) (release func()) {
	r.T.Helper()
	r.put(name, text)
	file, err := os.Open(r.path(name))
	if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	}
	if err != nil {
		r.T.Fatal(err)
	}
	return func() { file.Close() }
}

// TestReloadWhileStopping: a SIGHUP neither ends a stop nor waits for a disk that hangs, and many SIGHUPs are one or two.
func TestReloadWhileStopping(t *testing.T) {
	t.Parallel()
	r := startReloaded(t, "--shutdown-delay", "3600")
	r.put("policies", "api 11/1h")
	before := r.Log.String()
	for range 50 {
		r.Cmd.Process.Signal(syscall.SIGHUP)
	}
	awaitReload(r.Server, before)
	r.Cmd.Process.Signal(syscall.SIGTERM)
	r.Logs("stopping after the shutdown delay")
	before = r.Log.String()
	r.put("policies", "api 12/1h")
	r.Cmd.Process.Signal(syscall.SIGHUP) // the last of the 50 may be under way still
	celldtest.Eventually(t, "it is reloaded", func() bool { return strings.Contains(r.Log.String()[len(before):], `"changed":["api"]`) })
	defer r.slow("policies", "api 13/1h")()
	r.Cmd.Process.Signal(syscall.SIGHUP)
	r.Cmd.Process.Signal(syscall.SIGTERM)
	r.Cmd.Process.Signal(syscall.SIGHUP)
	r.Wait(0)
}

// TestReloadWhileLoading: a SIGHUP that comes early is done when the files are loaded.
func TestReloadWhileLoading(t *testing.T) {
	t.Parallel()
	dir, policies := t.TempDir(), filepath.Join(t.TempDir(), "policies")
	celldtest.WriteFile(t, "api 1/1h", policies)
	var log strings.Builder
	for log.Len() < 20<<20 {
		log.Write(harness.Frame("SET", "k"+time.Duration(log.Len()).String(), "4000000000000000000"))
	}
	celldtest.WriteFile(t, log.String(), dir, "appendonly.aof")
	srv := harness.Spec{Flags: []string{"--dir", dir, "--appendonly", "yes", "--policies", policies}, Early: true}.Start(t)
	celldtest.WriteFile(t, "api 2/1h", policies)
	says(t, reload(srv), `"changed":["api"]`)
	if log := srv.Log.String(); strings.Index(log, `"msg":"ready"`) > strings.Index(log, "a file is taken") {
		t.Errorf("it was reloaded too early:\n%s", log)
	}
}

// TestUsersAside: while ACL LOAD and ACL SAVE wait for their disk, others are served.
func TestUsersAside(t *testing.T) {
	t.Parallel()
	r := startReloaded(t, "--io-threads", "1")
	release := r.slow("users.acl", "user default on nopass ~* +@all\nuser fresh on nopass\n")
	slow, other := harness.Dial(t, r.Addr), harness.Dial(t, r.Addr)
	slow.Send(append(harness.Frame("ACL", "LOAD"), harness.Frame("ECHO", "behind")...))
	for range 100 {
		if got := other.Do("PING"); got != "+PONG\r\n" {
			t.Fatalf("%q", got)
		}
	}
	release()
	slow.Expect("+OK\r\n$6\r\nbehind\r\n")
	release = r.slow("users.acl", "user default on nopass ~* +@all\nuser fresh on nopass\nuser late on nopass\n")
	slow.Send(harness.Frame("ACL", "LOAD"))
	celldtest.Eventually(t, "it waits", func() bool { return strings.Contains(other.Do("CLIENT", "LIST"), "cmd=acl|load") })
	slow.Close()
	release()
	celldtest.Eventually(t, "it is read", func() bool { return strings.Contains(other.Do("ACL", "USERS"), "late") })
	if got := other.Do("ACL", "SAVE"); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	if text := celldtest.ReadFile(t, r.path("users.acl")); !strings.Contains(text, "user fresh on nopass") {
		t.Errorf("%q", text)
	}
	other.Do("MULTI")
	other.Do("ACL", "SAVE")
	other.Do("ACL", "LOAD")
	if got := other.Do("EXEC"); got != "*2\r\n+OK\r\n+OK\r\n" {
		t.Errorf("in MULTI: %q", got)
	}
}
