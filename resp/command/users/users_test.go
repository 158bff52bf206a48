package users

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/command/spec"
	"celld/resp/loglimit"
	"celld/store/memory"
)

var (
	text  = fmt.Sprintf
	bulk  = celldtest.BulkOf
	array = celldtest.BulksOf
)

// world is a host with users, clients and a log.
type world struct {
	*calltest.Host
	t       *testing.T
	users   *acl.Users
	denied  acl.Log
	clients client.List
	table   *command.Table
	file    string
	log     bytes.Buffer
	saved   int // how often it was told that the file is written
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	log := loglimit.New(slog.New(slog.NewTextHandler(&w.log, nil)), func() int64 { return 0 })
	server := func() Server {
		return Server{w.users, &w.denied, &w.clients, w.table, w.file, func() { w.saved++ }, log}
	}
	get := &command.Row{Name: "get", Arity: 2, Flags: spec.Readonly, Keys: spec.OneKey, Group: "string", Run: func(*command.Call) {}}
	set := &command.Row{Name: "set", Arity: -3, Flags: spec.Write, Keys: spec.OneKey, Group: "string", Run: func(*command.Call) {}}
	rows := append(Rows(server), get, set)
	w.table = command.NewTable(rows, func() any { return nil })
	w.Host = calltest.New(memory.Options{}, rows...)
	w.users = acl.NewUsers(w.table.ACL())
	w.connect()
	return w
}

func (w *world) connect() *calltest.Own { return w.Connect(&w.clients, w.users) }

func (w *world) wants(pairs ...string) { w.t.Helper(); w.Wants(w.t, pairs...) }

func (w *world) logged(line string) {
	w.t.Helper()
	if !strings.Contains(w.log.String(), line) {
		w.t.Errorf("no %s in %s", line, &w.log)
	}
}

func TestSetAndDelete(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL WHOAMI", bulk("default"), "ACL SETUSER app on nopass ~k* +get", "+OK\r\n", "ACL SETUSER b", "+OK\r\n",
		"ACL USERS", array("app", "b", "default"), "ACL LIST", array("user app on nopass ~k* resetchannels -@all +get",
			"user b off resetchannels -@all", "user default on nopass ~* &* +@all"))
	w.wants("ACL SETUSER app +get nosuch", text(errRule, "nosuch", "Syntax error"), "ACL DELUSER app default", errDefaultUser,
		"ACL GETUSER nobody", "$-1\r\n")
	if got := w.Do("ACL", "SETUSER", "a b"); got[0] != '-' {
		t.Errorf("%q", got)
	}
	w.wants("ACL DELUSER app nobody b", ":2\r\n", "ACL USERS", array("default"), "ACL DELUSER app", ":0\r\n")
}

func TestGetUser(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL SETUSER app on nopass ~k* +get", "+OK\r\n")
	w.wants("ACL GETUSER app", "*12\r\n"+bulk("flags")+array(w.users.Get("app").Rights().Flags()...)+bulk("passwords")+"*0\r\n"+
		bulk("commands")+bulk("-@all +get")+
		bulk("keys")+bulk("~k*")+bulk("channels")+bulk(w.users.Get("app").Rights().Channels())+bulk("selectors")+"*0\r\n")
	w.RESP3 = true
	if got := w.Do("ACL", "GETUSER", "app"); !strings.HasPrefix(got, "%6\r\n$5\r\nflags\r\n~") {
		t.Errorf("%q", got)
	}
}

// The connections of users that are removed or switched off end, one's own after its reply.
func TestConnectionsEnd(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL SETUSER app on nopass", "+OK\r\n", "ACL SETUSER certified on nopass", "+OK\r\n")
	app := w.connect()
	app.Seen.User.Store(w.users.Get("app"))
	certified := w.connect()
	certified.Seen.User.Store(w.users.Get("certified"))
	certified.Seen.Certified = w.users.Get("certified")
	operator := w.connect()
	if w.wants("ACL SETUSER app off", "+OK\r\n", "ACL SETUSER certified +get", "+OK\r\n"); app.Killed || certified.Killed {
		t.Error("they have ended")
	}
	if w.wants("ACL SETUSER certified off", "+OK\r\n"); !certified.Killed || app.Killed {
		t.Error("who has a certificate goes on")
	}
	if w.wants("ACL DELUSER app", ":1\r\n"); !app.Killed || operator.Killed || operator.Closed {
		t.Errorf("app %v, operator %v, %v", app.Killed, operator.Killed, operator.Closed)
	}
	w.wants("ACL SETUSER op on nopass", "+OK\r\n")
	operator.Seen.User.Store(w.users.Get("op"))
	if w.wants("ACL DELUSER op", ":1\r\n"); !operator.Closed || operator.Killed {
		t.Error("who removes itself gets a reply")
	}
}

// A call from within the process changes no users.
func TestWithoutConnection(t *testing.T) {
	w := newWorld(t)
	w.Own = nil
	for _, call := range []string{"ACL WHOAMI", "ACL SETUSER a", "ACL DELUSER a", "ACL LOAD"} {
		w.wants(call, command.ErrNoConnection)
	}
	w.wants("ACL USERS", array("default"))
}

func TestCategories(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL CAT", array(acl.CategoryNames...), "ACL CAT string", array("get", "set"), "ACL CAT no", text(errCategory, "no"),
		"ACL CAT a b", text(errACLArgs, "CAT"))
}

func TestGenPass(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL GENPASS 0", errGenPass, "ACL GENPASS 4097", errGenPass, "ACL GENPASS x", argument.ErrNotInteger,
		"ACL GENPASS 1 2", text(errACLArgs, "GENPASS"))
	for call, digits := range map[string]int{
		"ACL GENPASS": 64, "ACL GENPASS 1": 1, "ACL GENPASS 4": 1, "ACL GENPASS 5": 2, "ACL GENPASS 4096": 1024,
	} {
		got := w.Do(strings.Fields(call)...)
		if !strings.HasPrefix(got, text("$%d\r\n", digits)) || len(got) != len(bulk(strings.Repeat("0", digits))) ||
			digits > 1 && got == w.Do(strings.Fields(call)...) && digits > 8 {
			t.Errorf("%s: %q", call, got)
		}
	}
}

func TestLog(t *testing.T) {
	w := newWorld(t)
	for i := range 11 {
		w.denied.Add(acl.Entry{Reason: acl.DeniedKey, Context: "multi", Object: fmt.Sprint("k", i), Username: "app", AtNS: w.NowNS,
			Client: "id=1"}, 100)
	}
	w.NowNS += 1_234_567_890
	last := "*14\r\n" + bulk("count") + ":1\r\n" + bulk("reason") + bulk("key") + bulk("context") + bulk("multi") + bulk("object") +
		bulk("k10") + bulk("username") + bulk("app") + bulk("age-seconds") + bulk("1.234") + bulk("client-info") + bulk("id=1")
	w.wants("ACL LOG 1", "*1\r\n"+last, "ACL LOG 0", "*0\r\n", "ACL LOG -1", "*0\r\n", "ACL LOG x", argument.ErrNotInteger,
		"ACL LOG 1 2", text(errACLArgs, "LOG"))
	for call, n := range map[string]int{"ACL LOG": 10, "ACL LOG 9223372036854775807": 11} {
		if got := w.Do(strings.Fields(call)...); strings.Count(got, "reason") != n {
			t.Errorf("%s: %d entries", call, strings.Count(got, "reason"))
		}
	}
	w.NowNS -= 5e9
	if got := w.Do("ACL", "LOG", "1"); !strings.Contains(got, bulk("age-seconds")+bulk("0")) {
		t.Errorf("of the future: %q", got)
	}
	w.wants("ACL LOG Reset", "+OK\r\n", "ACL LOG", "*0\r\n")
}

func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.wants("ACL SETUSER app on nopass ~k* +get", "+OK\r\n", "ACL DRYRUN app GET k1", "+OK\r\n",
		"ACL DRYRUN app get other", bulk("This user has no permissions to access the 'other' key"),
		"ACL DRYRUN app SET k1 v", bulk("This user has no permissions to run the 'set' command"),
		"ACL DRYRUN app acl users", bulk("This user has no permissions to run the 'acl|users' command"),
		"ACL DRYRUN default ACL USERS", "+OK\r\n", "ACL DRYRUN nobody GET k", text(errDryRunUser, "nobody"),
		"ACL DRYRUN app NO k", text(errDryRunCommand, "NO"), "ACL DRYRUN app ACL NO", text(errDryRunCommand, "ACL"),
		"ACL DRYRUN app GET", text(command.ErrArity, "get"), "ACL DRYRUN app SET k", text(command.ErrArity, "set"),
		"ACL DRYRUN app ACL USERS x", text(command.ErrArity, "acl|users"))
}

func TestFile(t *testing.T) {
	for _, inExec := range []bool{false, true} {
		w := newWorld(t)
		w.InExec = inExec
		w.wants("ACL SAVE", errACLFile, "ACL LOAD", errACLFile)
		w.file = filepath.Join(t.TempDir(), "users.acl")
		got := w.Do("ACL", "LOAD")
		if !strings.HasPrefix(got, "-ERR Error loading ACLs, opening file") || strings.Contains(got, "WARNING") {
			t.Errorf("%q", got)
		}
		w.wants("ACL SETUSER app on nopass ~k* +get", "+OK\r\n", "ACL SAVE", "+OK\r\n", "ACL SETUSER app +set", "+OK\r\n")
		app := w.connect()
		app.Seen.User.Store(w.users.Get("app"))
		w.connect()
		if w.wants("ACL LOAD", "+OK\r\n"); !app.Killed || w.Own.Closed || w.users.Get("app").Rights().Commands() != "-@all +get" {
			t.Error("the file's users are not there")
		}
		if err := os.WriteFile(w.file, []byte("user\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got = w.Do("ACL", "LOAD")
		if !strings.HasSuffix(got, "no change to the previously active ACL rules was performed\r\n") || w.users.Get("app") == nil {
			t.Errorf("%q", got)
		}
		w.file += "/none"
		if w.wants("ACL SAVE", ErrACLSave); w.saved != 2 {
			t.Errorf("it is told %d times that the file is in force", w.saved)
		}
		w.logged(`msg="users could not be saved"`)
	}
}

func TestLongList(t *testing.T) {
	w := newWorld(t)
	if w.Most = 10; w.Do("ACL", "LIST") != "" {
		t.Error("it is over the output limit")
	}
}
