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
	"celld/resp/watch"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// world is a Reloader whose files are empty at first.
type world struct {
	Reloader
	watcher  watch.Watcher
	dir      string
	log      bytes.Buffer
	alone    bool
	stopping bool
}

func newWorld(t *testing.T, settings ...string) *world {
	w := &world{dir: t.TempDir()}
	keys := memory.New(memory.Options{})
	w.Reloader = Reloader{
		Config: config.New(), InForce: keys.Set,
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
	}
	w.watcher = watch.Watcher{Config: w.Config, Log: loglimit.New(slog.New(slog.NewTextHandler(&w.log, nil)), nil),
		Survive: func(string, ...any) {}}
	for _, name := range settings {
		if err := w.Config.Setting(name).Value.Set(w.put(t, name, "")); err != nil {
			t.Fatal(err)
		}
	}
	w.AddTo(&w.watcher)
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
	w.watcher.Reload()
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

// What the files hold is put to use, and told with what has changed.
func TestReload(t *testing.T) {
	w := newWorld(t, "policies", "loglevel-file", "requirepass-file")
	w.put(t, "policies", "a 1/1s\nb 2/1s\n")
	w.logs(t, `msg="a file is taken" setting=policies file=`+w.dir+`/policies added="[a b]"`,
		`msg=reloaded unchanged="requirepass-file loglevel-file" failed=""`)
	w.put(t, "policies", "b 3/1s\n")
	w.logs(t, `changed=[b] still_in_force=[a]`, "reloaded")
	w.put(t, "policies", "b 4/1s\nc\nd\n")
	w.logs(t, "policies:2: expected a name and its limits", "failed=policies")
	w.put(t, "policies", "b 4/1s\n")
	w.stopping = true
	w.logs(t, `error="the server is stopping"`, "failed=policies")
	w.stopping = false
	w.put(t, "loglevel-file", "debug\n")
	w.put(t, "requirepass-file", "secret\n")
	w.logs(t, `setting=requirepass-file file=`+w.dir+`/requirepass-file`, "changed=[b]",
		`setting=loglevel-file file=`+w.dir+`/loglevel-file value=debug`, "reloaded")
	if got := w.Config.RequirePass.Get(); got != "secret" {
		t.Errorf("the password is %s", got)
	}
	w.put(t, "loglevel-file", "loud\n")
	w.put(t, "requirepass-file", "\n")
	w.logs(t, "requirepass-file is empty", "setting=loglevel-file", `unchanged=policies failed="requirepass-file loglevel-file"`)
	if got := w.Config.RequirePass.Get(); got != "secret" {
		t.Errorf("the password is %s", got)
	}
	if a, b := w.InForce.PolicyNamed("a"), w.InForce.PolicyNamed("b"); a == nil || b.Limits[0].Limit.Count != 4 {
		t.Errorf("%v, %v", a, b)
	}
}

// What was set by CL.POLICY stays, unless the file has another line for it than before. What is saved is no change.
func TestOtherChangesStay(t *testing.T) {
	w := newWorld(t, "policies")
	w.put(t, "policies", "a 1/1s\nb 1/1s\n")
	w.logs(t, "added", "reloaded")
	set := func(name, text string) {
		t.Helper()
		limit, _ := cell.ParseLimit(text)
		if _, err := w.InForce.SetPolicy(name, []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	are := func(a, b string) {
		t.Helper()
		if got := w.InForce.PolicyNamed("a").String() + " " + w.InForce.PolicyNamed("b").String(); got != a+" "+b {
			t.Errorf("%s, want %s %s", got, a, b)
		}
	}
	set("a", "7/1s")
	set("b", "7/1s")
	w.put(t, "policies", "a 1/1s\nb 2/1s\n")
	w.logs(t, "changed=[b]", "reloaded")
	are("7/1s", "2/1s")
	w.put(t, "policies", "a 7/1s\nb 2/1s\n")
	w.watcher.Saved("policies")
	set("a", "8/1s")
	w.logs(t, "unchanged=policies")
	are("8/1s", "2/1s")
	w.put(t, "policies", "a 7/1s\nb 3/1s\n")
	w.logs(t, "changed=[b]", "reloaded")
	are("8/1s", "3/1s")
}

func TestReloadBesideATemporaryPolicy(t *testing.T) {
	w := newWorld(t, "policies")
	w.put(t, "policies", "a 1/1s\n")
	w.logs(t, "added=[a]", "reloaded")
	limit, _ := cell.ParseLimit("9/1s")
	for _, name := range []string{"a", "b"} {
		if _, err := w.InForce.SetPolicy(name, []cell.Limit{limit}, policy.Options{UntilNS: 1e18}); err != nil {
			t.Fatal(err)
		}
	}
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
	w := newWorld(t, "policies")
	limit, err := cell.ParseLimit("1/1s")
	if err != nil {
		t.Fatal(err)
	}
	for n := range policy.MaxPolicies {
		if _, err := w.InForce.SetPolicy(fmt.Sprint("p", n), []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	w.put(t, "policies", "p1 2/1s\n")
	w.logs(t, "added=[p1]", "reloaded")
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
	w := newWorld(t, "policies")
	w.put(t, "policies", "api 1/1s\nrule deny bad:*\nrule allow ip: CIDR 10.1.0.0/8\n")
	w.logs(t, `added="[api rule allow ip: CIDR 10.0.0.0/8 rule deny bad:*]"`, "reloaded")
	w.logs(t, "unchanged=policies")
	if _, err := w.InForce.PutRule(policy.Rule{Deny: true, Pattern: "bad:*", UntilNS: 1e18}, 0); err != nil {
		t.Fatal(err)
	}
	w.put(t, "policies", "api 2/1s\nrule deny bad:*\nrule deny k EX 5\n")
	w.logs(t, "policies:3: EX is for CL.RULE ADD: a rule of the file has no end", "failed=policies")
	w.put(t, "policies", "rule deny k\n")
	w.logs(t, `added="[rule deny k]" still_in_force="[api rule allow ip: CIDR 10.0.0.0/8 rule deny bad:*]"`, "reloaded")
	w.put(t, "policies", "rule deny bad:*\nrule deny k\n") // which lasts from now on
	w.logs(t, `added="[rule deny bad:*]"`, "reloaded")
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
	w := newWorld(t, "aclfile")
	w.put(t, "aclfile", "user app on nopass ~* +@all\nuser other on nopass ~* +@all\n")
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
	w.logs(t, `setting=aclfile file=`+w.dir+`/aclfile added="[app other]"`, "reloaded")
	open := func(name string) *client.Client {
		c := &client.Client{}
		c.User.Store(w.Users.Get(name))
		w.Clients.Admit(c, 100)
		w.Clients.Open(c, killed{}, -1)
		return c
	}
	app, other := open("app"), open("other")
	w.put(t, "aclfile", "user app off nopass ~* +@all\nuser other on nopass ~* +@all\n")
	if w.logs(t, "changed=[app]", "reloaded"); !app.Killed.Load() || other.Killed.Load() {
		t.Errorf("closed: %v, %v", app.Killed.Load(), other.Killed.Load())
	}
	w.put(t, "aclfile", "nobody\n")
	if w.logs(t, "setting=aclfile file="+w.dir+"/aclfile error=", "failed=aclfile"); w.Users.Get("app") == nil || replaced != 2 {
		t.Errorf("bad users are taken; replaced %d times while nothing else ran", replaced)
	}
}

func TestReloadCertificates(t *testing.T) {
	w, ca := newWorld(t), celldtest.NewAuthority(t)
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
	w.Config.TLS.Key.Put(w.dir + "/key")
	w.AddTo(&w.watcher)
	pair()
	w.logs(t, "setting=tls-cert-file file="+w.dir+"/crt not_after="+k.NotAfter().UTC().Format(time.RFC3339), "reloaded")
	w.put(t, "crt", "nothing")
	w.logs(t, "setting=tls-cert-file file="+w.dir+"/crt error=", "failed=tls-cert-file")
}

// A line of the log has at most 20 names of a kind.
func TestChangesAreFew(t *testing.T) {
	before, after := map[string]string{"gone": "", "kept": "1", "other": "1"}, map[string]string{"kept": "1", "other": "2"}
	for c := range byte(22) {
		after["n"+string('a'+c)] = ""
	}
	c := changesOf(before, after)
	if got := c.attrs("gone"); len(got) != 6 || len(got[1].([]string)) != 21 || got[1].([]string)[20] != "and 2 more" ||
		got[3].([]string)[0] != "other" || got[4] != "gone" || got[5].([]string)[0] != "gone" {
		t.Errorf("%v", got)
	}
	if none := changesOf(before, before); none.attrs("gone") != nil {
		t.Errorf("%v", none)
	}
}
