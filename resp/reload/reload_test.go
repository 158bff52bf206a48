package reload

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/acl"
	"celld/resp/certs"
	"celld/resp/client"
	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/transport"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// world is a Reloader of files, and what the log says of that.
type world struct {
	Reloader
	dir      string
	log      bytes.Buffer
	alone    bool
	stopping bool
}

func newWorld(t *testing.T) *world {
	w := &world{dir: t.TempDir()}
	keys := memory.New(memory.Options{})
	w.Reloader = Reloader{
		Config: config.New(), Log: loglimit.New(slog.New(slog.NewTextHandler(&w.log, nil)), nil), InForce: keys.Set,
		Store: func() store.Store {
			if !w.alone {
				t.Error("policies are set beside commands")
			}
			return memory.Port{Store: keys}
		},
		Alone: func() func() {
			w.alone = true
			return func() { w.alone = false }
		},
		Stopping: func() bool { return w.stopping },
		Survive: func(string, ...any) {
			if recover() != nil {
				w.log.WriteString("a panic\n")
			}
		},
	}
	return w
}

func (w *world) put(t *testing.T, name, text string) string {
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// logs reloads, and looks for these words in the lines of the log, of which there are no more.
func (w *world) logs(t *testing.T, lines ...string) {
	t.Helper()
	w.log.Reset()
	w.Reload()
	got := strings.Split(strings.TrimSuffix(w.log.String(), "\n"), "\n")
	if len(got) != len(lines) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(lines), &w.log)
		return
	}
	for i, line := range lines {
		if !strings.Contains(got[i], line) {
			t.Errorf("%s\nwant %s", got[i], line)
		}
	}
}

// Each file gets a line of its own: what has changed in it, or what is wrong with it. A wrong file changes nothing.
func TestReload(t *testing.T) {
	w := newWorld(t)
	w.logs(t, "there is nothing to reload: none of --tls-cert-file, --aclfile, --policies, --loglevel-file and --envoy-config is set")
	w.Config.PoliciesFile.Put(w.put(t, "policies", "a 1/1s\nb 2/1s\n"))
	w.logs(t, `msg="a file is reloaded" what=policies file=`+w.dir+`/policies added="[a b]"`, `msg=reloaded unchanged="" failed=""`)
	w.logs(t, `msg=reloaded unchanged=policies failed=""`)
	w.put(t, "policies", "b 3/1s\n")
	w.logs(t, `changed=[b]`, "reloaded")
	w.put(t, "policies", "b 4\nc\n")
	w.logs(t, "level=WARN msg=\"a file is not reloaded, what was read before stays\" what=policies",
		"policies:2: expected a name and its limits", `unchanged="" failed=policies`)
	w.put(t, "policies", "b 4/1s\n")
	w.stopping = true
	w.logs(t, `error="the server is stopping"`, "failed=policies")
	w.stopping = false
	w.Config.LogLevelFile.Put(w.put(t, "level", "debug\n"))
	w.logs(t, "changed=[b]", `what=loglevel file=`+w.dir+`/level value=debug`, "reloaded")
	w.put(t, "level", "loud\n")
	w.logs(t, "what=loglevel file="+w.dir+"/level error=", "unchanged=policies failed=loglevel")
	if a, b := w.InForce.PolicyNamed("a"), w.InForce.PolicyNamed("b"); a == nil || b.Limits[0].Limit.Count != 4 {
		t.Errorf("%v, %v", a, b)
	}
	w.Alone = func() func() { panic("broken") }
	w.logs(t, "a panic", `what=policies file=`+w.dir+`/policies error="a fault in celld"`, "what=loglevel", `failed="policies loglevel"`)
}

// What the file says is the lasting policy. A temporary one stays in force until its end.
func TestReloadBesideATemporaryPolicy(t *testing.T) {
	w := newWorld(t)
	w.Config.PoliciesFile.Put(w.put(t, "policies", "a 1/1s\n"))
	w.logs(t, "added=[a]", "reloaded")
	limit, _ := cell.ParseLimit("9/1s")
	for _, name := range []string{"a", "b"} {
		if _, err := w.InForce.SetPolicy(name, []cell.Limit{limit}, policy.Options{UntilNS: 1e18}); err != nil {
			t.Fatal(err)
		}
	}
	w.logs(t, "unchanged=policies")
	w.put(t, "policies", "a 2/1s\nb 3/1s\n")
	w.logs(t, "added=[b] changed=[a]", "reloaded")
	for _, want := range []string{"a: 9/1s, then 2/1s", "b: 9/1s, then 3/1s"} {
		p := w.InForce.PolicyNamed(want[:1])
		if got := p.Name + ": " + p.String() + ", then " + p.Lasting().String(); got != want || p.UntilNS != 1e18 {
			t.Errorf("%s until %d", got, p.UntilNS)
		}
	}
}

// More policies than there may be change nothing.
func TestReloadOfTooManyPolicies(t *testing.T) {
	w := newWorld(t)
	limit, err := cell.ParseLimit("1/1s")
	if err != nil {
		t.Fatal(err)
	}
	for n := range policy.MaxPolicies {
		if _, err := w.InForce.SetPolicy(fmt.Sprint("p", n), []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	w.Config.PoliciesFile.Put(w.put(t, "policies", "p1 2/1s\n"))
	w.logs(t, "changed=[p1]", "reloaded")
	w.put(t, "policies", "p2 2/1s\nmore 1/1s\n")
	full := "set 'policy more 1/1s' of " + w.dir + "/policies: ERR there are 65536 policies already, and no more are allowed"
	w.logs(t, `error="`+full+`"`, "failed=policies")
	if p := w.InForce.PolicyNamed("p2"); p.Limits[0].Limit.Count != 1 {
		t.Errorf("%v", p)
	}
	w.alone, w.File.Policies = true, []*policy.Policy{policy.New("more", limit)}
	if err := w.KeepPolicies(); err == nil || err.Error() != full {
		t.Errorf("%v, want %s", err, full)
	}
}

// Rules of the file are set as policies are: those that have left it stay, and the log names what is new or has an end no more. A file that
// cannot be used changes neither.
func TestReloadOfRules(t *testing.T) {
	w := newWorld(t)
	w.Config.PoliciesFile.Put(w.put(t, "policies", "api 1/1s\nrule deny bad:*\nrule allow ip: CIDR 10.1.0.0/8\n"))
	w.logs(t, `added="[api rule allow ip: CIDR 10.0.0.0/8 rule deny bad:*]"`, "reloaded")
	w.logs(t, "unchanged=policies")
	if _, err := w.InForce.PutRule(policy.Rule{Deny: true, Pattern: "bad:*", UntilNS: 1e18}, 0); err != nil {
		t.Fatal(err)
	}
	w.put(t, "policies", "api 2/1s\nrule deny bad:*\nrule deny k EX 5\n")
	w.logs(t, "policies:3: EX is for CL.RULE ADD: a rule of the file has no end", "failed=policies")
	w.put(t, "policies", "rule deny bad:*\nrule deny k\n")
	w.logs(t, `added="[rule deny k]" changed="[rule deny bad:*]"`, "reloaded")
	if n := len(w.InForce.Rules(2e18)); n != 3 || w.InForce.PolicyNamed("api").Limits[0].Limit.Count != 1 {
		t.Errorf("%v, %v", w.InForce.Rules(0), w.InForce.PolicyNamed("api"))
	}
	for n := range policy.MaxRules - 3 {
		if _, err := w.InForce.PutRule(policy.Rule{Pattern: fmt.Sprint("r", n)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.put(t, "policies", "new 1/1s\nrule deny bad:*\nrule deny more\n")
	full := "set 'rule deny more' of " + w.dir + "/policies: ERR there are 65536 rules already, and no more are allowed"
	w.logs(t, `error="`+full+`"`, "failed=policies")
	if w.InForce.PolicyNamed("new") != nil {
		t.Error("its policies are set")
	}
	w.alone, w.File.Policies, w.File.Rules = true, nil, []policy.Rule{{Deny: true, Pattern: "more"}}
	if err := w.KeepPolicies(); err == nil || err.Error() != full {
		t.Errorf("%v, want %s", err, full)
	}
}

// killed is a connection that may be ended.
type killed struct{ transport.Conn }

func (killed) Close(bool) {}

// Connections of users who have changed are closed, while no command runs.
func TestReloadUsers(t *testing.T) {
	w := newWorld(t)
	w.Config.ACLFile.Put(w.put(t, "users", "user app on nopass ~* +@all\nuser other on nopass ~* +@all\n"))
	w.Users, w.Clients = acl.NewUsers(acl.NewTable(nil, nil)), &client.List{}
	replaced := 0
	w.Alone = func() func() {
		before := w.Users.Get("app")
		return func() {
			if w.Users.Get("app") != before || before != nil {
				replaced++
			}
		}
	}
	w.logs(t, `what=users file=`+w.dir+`/users added="[app other]"`, "reloaded")
	open := func(name string) *client.Client {
		c := &client.Client{}
		c.User.Store(w.Users.Get(name))
		w.Clients.Admit(c, 100)
		w.Clients.Open(c, killed{}, -1)
		return c
	}
	app, other := open("app"), open("other")
	w.put(t, "users", "user app off nopass ~* +@all\nuser other on nopass ~* +@all\n")
	if w.logs(t, "changed=[app]", "reloaded"); !app.Killed.Load() || other.Killed.Load() {
		t.Errorf("closed: %v, %v", app.Killed.Load(), other.Killed.Load())
	}
	w.put(t, "users", "nobody\n")
	if w.logs(t, "what=users file="+w.dir+"/users error=", "failed=users"); w.Users.Get("app") == nil || replaced != 2 {
		t.Errorf("bad users are taken; replaced %d times while nothing else ran", replaced)
	}
}

func TestReloadCertificates(t *testing.T) {
	w, ca := newWorld(t), celldtest.NewAuthority(t)
	failed := 0
	w.Failed = func() { failed++ }
	until := time.Now().Add(time.Hour) // of both, as one that is signed later may end a second later
	pair := func() {
		cert, key := ca.Sign("x", &x509.Certificate{NotAfter: until})
		w.put(t, "crt", celldtest.ReadFile(t, cert))
		w.put(t, "key", celldtest.ReadFile(t, key))
	}
	pair()
	k, err := certs.Open(certs.Files{Cert: w.dir + "/crt", Key: w.dir + "/key"})
	if err != nil {
		t.Fatal(err)
	}
	w.Config.TLS.Keeper = k
	w.Config.TLS.Cert.Put(w.dir + "/crt")
	w.logs(t, "unchanged=certificates")
	pair()
	w.logs(t, "what=certificates file="+w.dir+"/crt not_after="+k.NotAfter().UTC().Format(time.RFC3339), "reloaded")
	w.put(t, "crt", "nothing")
	if w.logs(t, "what=certificates file="+w.dir+"/crt error=", "failed=certificates"); failed != 1 {
		t.Errorf("%d have failed", failed)
	}
}

// A line of the log has at most 20 names of a kind.
func TestChangesAreFew(t *testing.T) {
	before, after := map[string]string{"gone": "", "kept": "1", "other": "1"}, map[string]string{"kept": "1", "other": "2"}
	for c := range byte(22) {
		after["n"+string('a'+c)] = ""
	}
	c := changesOf(before, after)
	if got := c.attrs(); len(got) != 6 || len(got[1].([]string)) != 21 || got[1].([]string)[20] != "and 2 more" ||
		got[3].([]string)[0] != "other" || got[5].([]string)[0] != "gone" {
		t.Errorf("%v", got)
	}
	if none := changesOf(before, before); !none.none() || c.none() {
		t.Errorf("%v", none)
	}
}
