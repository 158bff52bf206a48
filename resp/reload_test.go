package resp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/resp/command/argument"
	"celld/resp/command/limit"
	"celld/resp/command/users"
	"celld/resp/config"
	"celld/store/policy"
)

// ReadFiles tells what is wrong with each file.
func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	cfg := config.New()
	if files, err := ReadFiles(cfg); err != nil || files.policies.Policies != nil || files.users != nil {
		t.Errorf("no files: %+v, %v", files, err)
	}
	err := errors.Join(cfg.PoliciesFile.Set(put("policies", "api 5/1s\n")), cfg.ACLFile.Set(put("users", "user app on nopass ~* +@all\n")))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := ReadFiles(cfg); err != nil || len(files.policies.Policies) != 1 || files.users == nil {
		t.Errorf("%+v, %v", files, err)
	}
	put("policies", "api 20000/1h,algo=log\n")
	put("users", "nobody\n")
	if _, err := ReadFiles(cfg); err == nil || !strings.Contains(err.Error(), "algo=log keeps at most 10000 calls (--log-max)\n") ||
		!strings.Contains(err.Error(), cfg.ACLFile.Get()) {
		t.Error(err)
	}
}

// A policy of an earlier version whose name ends in a colon is loaded and used, and can be removed.
func TestAPolicyThatEndsInAColonIsLoaded(t *testing.T) {
	w := newWorld(t)
	if err := w.sessions.Store.PutSetting(policy.Setting{Name: "old:"}, "5/1h", w.nowNS); err != nil {
		t.Fatal(err)
	}
	p := w.connect()
	p.want("CL.POLICY GET old:", "$4\r\n5/1h\r\n")
	p.want("CL.TAKE k @old::x PEEK", "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n")
	p.want("CL.TAKE k @old: PEEK", "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n")
	p.want("CL.POLICY SET old: 6/1h", "-ERR invalid policy name 'old:': expected no colon at its end, such as 'api' or 'api:cust42'\r\n")
	p.want("CL.POLICY DEL old:", ":1\r\n")
}

// The policies of the file are in force after the start, whatever was there; what was used of those that are as before is kept.
func TestPoliciesOfTheFileAreSet(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	file := filepath.Join(t.TempDir(), "policies")
	set := func(text string) error {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.reloads.File, err = limit.ReadFile(file, 10); err != nil {
			t.Fatal(err)
		}
		return w.reloads.KeepPolicies()
	}
	p.want("CL.POLICY SET a 5/1h", ":1\r\n")
	p.want("CL.POLICY SET other 5/1h", ":1\r\n")
	p.want("CL.TAKE k @a COST 2", "*7\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:1440000\r\n:2\r\n:0\r\n")
	changes := w.sessions.Store.SettingChanges()
	if err := set("a 5/1h\n"); err != nil || w.sessions.Store.SettingChanges() != changes {
		t.Errorf("%v; what is as before is set anew", err)
	}
	if err := set("a 10/1h\nb 7/1m\n"); err != nil {
		t.Error(err)
	}
	p.want("CL.TAKE k @a PEEK", "*7\r\n:0\r\n:10\r\n:8\r\n:-1\r\n:720000\r\n:0\r\n:0\r\n")
	p.want("CL.POLICY LIST", "*6\r\n$1\r\na\r\n$5\r\n10/1h\r\n$1\r\nb\r\n$4\r\n7/1m\r\n$5\r\nother\r\n$4\r\n5/1h\r\n")

	limit, _ := argument.ParseLiteral([]byte("5/1s"), 1)
	for i := range policy.MaxPolicies - 3 {
		if _, err := w.sessions.Store.SetPolicy(fmt.Sprint("full", i), []cell.Limit{limit}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	w.sessions.Config.PoliciesFile.Set(file)
	err := set("b 8/1m\nlast 1/1s\n")
	if err == nil || err.Error() != "set 'policy last 1/1s' of "+file+": ERR there are 65536 policies already, and no more are allowed" {
		t.Error(err)
	}
	if got := w.sessions.Store.PolicyNamed("b").Limits[0].Limit.Count; got != 8 {
		t.Errorf("%d", got)
	}
}

// A reload of users is ACL LOAD without a session.
func TestReloadUsers(t *testing.T) {
	path := t.TempDir() + "/users.acl"
	w := newWorld(t, "aclfile", path)
	c := w.connect()
	c.want("ACL SETUSER app on nopass", "+OK\r\n")
	c.want("ACL SAVE", "+OK\r\n")
	app := w.connect()
	app.want("AUTH app x", "+OK\r\n")
	if w.Reload(); app.tr.Closed {
		t.Errorf("a user who is as before is closed: %s", w.log)
	}
	c.want("ACL SETUSER app +get", "+OK\r\n")
	if w.Reload(); app.tr.Closed { // the file is as it was
		t.Errorf("a user who is changed by a command is closed: %s", w.log)
	}
	text := celldtest.ReadFile(t, path)
	celldtest.WriteFile(t, text+"\n", path)
	if w.Reload(); !app.tr.Closed || app.do("PING") != "" {
		t.Errorf("closed %v: %s", app.tr.Closed, w.log)
	}
	if got := w.sessions.Users.Get("app").Rights().Commands(); got != "-@all" {
		t.Error(got)
	}
	celldtest.WriteFile(t, "nobody\n", path)
	w.Reload()
	if !strings.Contains(w.log.String(), `msg="a file is refused, and what was read before stays" setting=aclfile`) ||
		w.sessions.Users.Get("app") == nil {
		t.Error(w.log)
	}
	if trouble := w.Overview().Troubles; len(trouble) != 1 || !strings.HasPrefix(trouble[0], "the file of --aclfile is refused") {
		t.Errorf("%q", trouble)
	}
	w.sessions.Config.ACLFile.Put(path + "/none")
	c.want("ACL SAVE", "-"+users.ErrACLSave+"\r\n")
}

// ACL LOAD, also in MULTI where it runs while nobody else does, waits for no reload that waits for it.
func TestReloadBesideACLLoad(t *testing.T) {
	path := t.TempDir() + "/users.acl"
	w := newWorld(t, "aclfile", path)
	c := w.connect()
	c.want("ACL SAVE", "+OK\r\n")
	text := celldtest.ReadFile(t, path)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			celldtest.WriteFile(t, text+strings.Repeat("\n", n%50), path)
			w.Reload()
		}
	}()
	for range 300 {
		c.do("MULTI")
		c.do("ACL", "LOAD")
		c.do("EXEC")
	}
	close(stop)
	<-stopped
}
