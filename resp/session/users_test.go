package session

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/connection"
	"celld/resp/command/spec"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/session/sessiontest"
)

// In a pipeline of calls that are alike, those on other keys are refused, each in its place; and all calls of commands that the user
// may not run.
func TestPipelinesOfAUser(t *testing.T) {
	for _, call := range shortCalls {
		w := newWorld(t)
		singles := w.countSingles(call.row)
		admin, c := w.connect(), w.connect()
		const noKey = "-" + door.ErrNoPermKey + "\r\n"
		other := strings.Replace(call.frame, "$1\r\nk\r\n", "$1\r\no\r\n", 1)
		set := func(rules string) { admin.want("ACL SETUSER app "+rules, "+OK\r\n") }
		set("on nopass ~k -@all +" + call.row)
		c.want("AUTH app x", "+OK\r\n")
		pipeline := call.frame + call.frame + other + call.frame + other + other
		if got, want := c.send(pipeline), call.reply+call.reply+noKey+call.reply+noKey+noKey; got != want || *singles != 0 {
			t.Errorf("%s: %q, want %q, and %d were run by themselves", call.row, got, want, *singles)
		}
		set("-" + call.row)
		no := fmt.Sprintf("-"+door.ErrNoPermCommand+"\r\n", call.row)
		if got := c.send(call.frame + call.frame + other); got != no+no+no {
			t.Errorf("%s: %q, want %q", call.row, got, no+no+no)
		}
		set("resetkeys %R~k +" + call.row)
		if got := c.send(call.frame + call.frame); got != noKey+noKey {
			t.Errorf("%s with a key that may only be read: %q", call.row, got)
		}
		set("+@all allkeys")
		if got := c.send(pipeline); got != strings.Repeat(call.reply, 6) || c.gate.Has(gate.Rights) {
			t.Errorf("%s: who may do everything: %q", call.row, got)
		}
		if text := admin.do("INFO", "stats"); !strings.Contains(text, "acl_access_denied_cmd:3\r\nacl_access_denied_key:5\r\n") {
			t.Errorf("%s", text)
		}
	}
}

// A batch of very many limits is cut anywhere.
func TestALongPipelineIsCut(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("ACL SETUSER app on nopass ~k +cl.take", "+OK\r\n")
	c.want("AUTH app x", "+OK\r\n")
	words := []string{"CL.TAKE", "k"}
	for i := range 100 {
		words = append(words, fmt.Sprintf("1000000/%ds", i+1))
	}
	allowed, refused := sessiontest.Frame(append(words, "PEEK")...), sessiontest.Frame("CL.TAKE", "o", "5/1m")
	one := c.send(allowed)
	for at := range 7 {
		got, want := c.send(strings.Repeat(allowed, at)+refused+strings.Repeat(allowed, 3)),
			strings.Repeat(one, at)+"-"+door.ErrNoPermKey+"\r\n"+strings.Repeat(one, 3)
		if got != want {
			t.Fatalf("after %d: %q", at, got)
		}
	}
}

// CL.MTAKE needs all of its keys, and a call that waits its turn in MULTI is checked there, too.
func TestRightsOnSeveralKeys(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("ACL SETUSER app on nopass ~a* +@celld +@transaction -cl.reset", "+OK\r\n")
	c.want("AUTH app x", "+OK\r\n")
	const noKey = "-" + door.ErrNoPermKey + "\r\n"
	if got := c.do("CL.MTAKE", "2", "a1", "5/1m", "a2", "5/1m"); got[0] != '*' {
		t.Errorf("%q", got)
	}
	c.want("CL.MTAKE 2 a1 5/1m b2 5/1m", noKey)
	c.want("CL.MTAKE 2 b1 5/1m a2 5/1m", noKey)
	c.want("CL.RELEASE b 1", noKey)
	c.want("CL.RESET a1", "-"+fmt.Sprintf(door.ErrNoPermCommand, "cl.reset")+"\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("CL.TAKE b 5/1m", noKey)
	c.want("EXEC", "-"+errExecAbort+"\r\n")
}

// Each key that a command uses is checked: the row says where they are, and how many there are says the command itself.
func TestEachCommandWithKeysIsChecked(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("ACL SETUSER app on nopass +@all ~none", "+OK\r\n")
	c.want("AUTH app x", "+OK\r\n")
	checked := 0
	w.Commands.Each(func(row *command.Row) {
		if row.Keys.Step == 0 || row.Flags&spec.NoAuth != 0 {
			return
		}
		words := strings.Split(row.FullName(), "|")
		for len(words) < max(row.Arity, -row.Arity, row.Keys.First+1) {
			words = append(words, "1") // as a number it says that there is one key
		}
		checked++
		if got := c.do(words...); got != "-"+door.ErrNoPermKey+"\r\n" {
			t.Errorf("%q: %q", words, got)
		}
	})
	if checked < 45 {
		t.Errorf("%d commands", checked)
	}
}

// The password of CONFIG SET requirepass is the default user's, and that of who has authenticated before stays as it is.
func TestRequirepassIsTheDefaultUsers(t *testing.T) {
	w := newWorld(t)
	before := w.connect()
	before.want("CONFIG SET requirepass sesame", "+OK\r\n")
	before.want("PING", "+PONG\r\n")
	after := w.connect()
	after.want("PING", "-"+errNoAuth+"\r\n")
	got := w.Users.Default.Line()
	if got != "user default on #d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272 ~* &* +@all" {
		t.Error(got)
	}
	if got := before.do("CONFIG", "SET", "requirepass", ""); got != "+OK\r\n" {
		t.Error(got)
	}
	after.want("PING", "+PONG\r\n") // as it would on a new connection
	after.want("AUTH x", "-"+connection.ErrNoPassword+"\r\n")
}

// Secrets of CONFIG GET are for those who may do everything.
func TestConfigGetHidesSecrets(t *testing.T) {
	c := newWorld(t, "requirepass", "sesame").connect()
	c.want("AUTH sesame", "+OK\r\n")
	c.want("CONFIG GET requirepass", "*2\r\n$11\r\nrequirepass\r\n$6\r\nsesame\r\n")
	c.want("ACL SETUSER monitor on nopass +config|get", "+OK\r\n")
	c.want("AUTH monitor x", "+OK\r\n")
	c.want("CONFIG GET requirepass", "*2\r\n$11\r\nrequirepass\r\n$8\r\n(secret)\r\n")
	if got := c.do("CONFIG", "GET", "*"); strings.Contains(got, "sesame") {
		t.Error(got)
	}
}

// No password of a user is where others see it.
func TestPasswordsOfUsersAreNotShown(t *testing.T) {
	w := newWorld(t, "slowlog-log-slower-than", "0")
	monitor, c := w.connect(), w.connect()
	monitor.want("MONITOR", "+OK\r\n")
	c.want("ACL SETUSER app on >hunter1 ~* +@all", "+OK\r\n")
	c.want("AUTH app hunter1", "+OK\r\n")
	c.do("HELLO", "2", "AUTH", "app", "hunter1")
	c.do("ACL", "SETUSER", "app", ">hunter2", "nosuch")
	c.want("CONFIG SET requirepass hunter4", "+OK\r\n")
	c.do("MULTI")
	c.do("ACL", "SETUSER", "app", ">hunter5")
	c.do("CONFIG", "SET", "requirepass", "hunter6")
	c.do("AUTH", "app", "hunter5")
	c.do("EXEC")
	for _, call := range []string{
		"AUTH app hunter7", "HELLO 3 AUTH app hunter7", "ACL SETUSER app >hunter7", "CONFIG SET requirepass hunter7",
		"acl dryrun app auth hunter7", "MIGRATE h 1 k 0 9 AUTH hunter7",
	} {
		c.do(append([]string{"ACL", "DryRun", "app"}, strings.Fields(call)...)...)
	}
	c.do("AUTH", "app", "hunter3")
	seen := monitor.send("") + c.do("SLOWLOG", "GET") + c.do("ACL", "LIST") + c.do("ACL", "GETUSER", "app") + c.do("ACL", "LOG") +
		c.do("CLIENT", "LIST") + w.log.String()
	if strings.Contains(seen, "hunter") || !strings.Contains(seen, "$7\r\nSETUSER\r\n$10\r\n(redacted)\r\n") ||
		!strings.Contains(seen, "$6\r\nDryRun\r\n$3\r\napp\r\n$4\r\nAUTH\r\n$10\r\n(redacted)\r\n") {
		t.Errorf("%s", seen)
	}
}

// The log of refusals has at most acllog-max-len entries.
func TestACLLogIsBounded(t *testing.T) {
	c := newWorld(t, "acllog-max-len", "3").connect()
	for i := range 5 {
		c.do("AUTH", fmt.Sprint("nobody", i), "x")
	}
	got := c.do("ACL", "LOG")
	if !strings.HasPrefix(got, "*3\r\n") || strings.Contains(got, "nobody1") || !strings.Contains(got, "nobody4") {
		t.Error(got)
	}
	c.want("CONFIG SET acllog-max-len 1", "+OK\r\n")
	c.do("AUTH", "another", "x")
	if got := c.do("ACL", "LOG"); !strings.HasPrefix(got, "*1\r\n") || !strings.Contains(got, "another") {
		t.Error(got)
	}
	c.want("CONFIG SET acllog-max-len 1025",
		"-"+fmt.Sprintf(settingFailed, "acllog-max-len", "argument must be between 0 and 1024 inclusive")+"\r\n")
}

// Each change by an operator is a line of the log that tells who made it; what changes nothing, and what applications send, is none.
func TestChangesAreAudited(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.want("ACL SETUSER boss on >secret ~* +@all", "+OK\r\n")
	p.want("AUTH boss secret", "+OK\r\n")
	for _, test := range []struct {
		command string
		changes bool
	}{
		{"ACL SETUSER app on >word ~app:*", true}, {"ACL SETUSER app nosuch", false}, {"ACL DELUSER app", true}, {"ACL DELUSER app", false},
		{"CL.POLICY SET api 100/1m EX 60", true}, {"CL.POLICY SET api 5/1m NX", false}, {"CL.POLICY GET api", false},
		{"CL.POLICY DEL api", true}, {"CL.POLICY SAVE", false}, {"CL.RULE ADD DENY bad:*", true}, {"CL.RULE DEL DENY bad:*", true},
		{"CL.RULE DEL DENY bad:*", false}, {"CL.TOP", false}, {"CL.TOP RESET", true}, {"CL.STATS", false}, {"CL.STATS RESET", true},
		{"CONFIG SET timeout 5 maxclients 9000", true}, {"CONFIG GET timeout", false}, {"FLUSHALL", true}, {"FLUSHDB", true},
		{"CLIENT KILL ID 999", false}, {"CL.TAKE k 5/1m", false}, {"CL.GIVE k 5/1m", false}, {"CL.RESET k", false}, {"DEL k", false},
	} {
		w.log.Reset()
		p.do(strings.Fields(test.command)...)
		told := strings.ReplaceAll(test.command, ">word", "(redacted)")
		if strings.Contains(told, " ") {
			told = strconv.Quote(told)
		}
		want := `msg="an operator has changed something" command=` + told + " user=boss client=127.0.0.1:4711"
		if got := w.log.String(); strings.Contains(got, want) != test.changes || strings.Count(got, "operator") > 1 ||
			!test.changes && strings.Contains(got, "operator") {
			t.Errorf("%s: %s", test.command, got)
		}
	}
	w.sleepMS(1000)
	w.log.Reset()
	for range mostChanges + 100 { // nobody fills the disk
		p.do("CONFIG", "SET", "timeout", "0")
	}
	if n := strings.Count(w.log.String(), "operator"); n != mostChanges {
		t.Errorf("%d lines in a second", n)
	}
	w.sleepMS(1000)
	logs := func(lines int, calls ...[]string) { // by whatever way it comes
		t.Helper()
		w.log.Reset()
		for _, call := range calls {
			p.do(call...)
		}
		if got := strings.Count(w.log.String(), "an operator has changed something"); got != lines {
			t.Errorf("%d lines: %s", got, w.log)
		}
	}
	w.sleepMS(1000)
	logs(2, []string{"MULTI"}, []string{"CL.POLICY", "SET", "a", "5/1m"}, []string{"FLUSHALL"}, []string{"EXEC"})
	logs(1, []string{"EVAL", "return redis.call('CL.POLICY', 'DEL', 'a')", "0"})
}

// A start and an ACL SAVE remove what a process has left that was killed within ACL SAVE.
func TestLeftUsersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/users.acl"
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		files, _ := os.ReadDir(dir)
		return len(files) - 1
	}
	killed := fmt.Sprintf("%s.tmp-%d-1", path, os.Getpid()) // whose number this process has now
	put(path, "user app on nopass ~* +@all\n")
	put(killed, "user")
	users, err := acl.ReadFile(NewTable(tableless(t), nil).ACL(), path)
	if err != nil || left() != 1 {
		t.Fatal(err, left()) // so does celld --check
	}
	w := newWorld(t, "aclfile", path)
	if w.useUsers(users); left() != 0 {
		t.Error("a start leaves it")
	}
	put(killed, "user")
	if w.connect().want("ACL SAVE", "+OK\r\n"); left() != 0 {
		t.Error("ACL SAVE leaves it")
	}
}

// Rights that change while EXEC waits to run alone hold for its commands.
func TestRightsChangeBeforeEXEC(t *testing.T) {
	w := newWorld(t)
	admin, c := w.connect(), w.connect()
	admin.want("ACL SETUSER app on nopass ~* +@all", "+OK\r\n")
	c.want("AUTH app x", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("GET k", "+QUEUED\r\n")
	done := make(chan string)
	w.Commands.Add(&command.Row{Name: "meanwhile", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) {
		go func() { done <- c.do("EXEC") }()
		stacks := make([]byte, 1<<20)
		for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("sync.(*RWMutex).Lock")) { // it has come, and waits
			runtime.Gosched()
		}
		if err := w.Users.Set("app", []string{"-get"}); err != nil {
			t.Error(err)
		}
		s.call.OK()
	})})
	admin.want("MEANWHILE", "+OK\r\n")
	if got, want := <-done, "*1\r\n-"+fmt.Sprintf(errNoPermExec, lostRights[acl.DeniedCommand])+"\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Tables number commands alike, as a file is read by one and its users are another's.
func TestTablesAreAlike(t *testing.T) {
	users := acl.NewUsers(NewTable(tableless(t), nil).ACL())
	other := NewTable(tableless(t), nil)
	other.ACL()
	other.Each(func(row *command.Row) {
		if err := users.Set("u", []string{"reset", "+" + row.FullName()}); err != nil {
			t.Fatal(err)
		}
		if !users.Get("u").Rights().MayRun(row.ACL, nil) {
			t.Errorf("%s is another command there", row.FullName())
		}
	})
}

// settingFailed is the reply of CONFIG SET that names a setting and what is wrong.
const settingFailed = "ERR CONFIG SET failed (possibly related to argument '%s') - %s"

// tableless is a service of which only the settings are there.
func tableless(t *testing.T) *Service {
	srv := &Service{}
	srv.Config = sessiontest.Settings(t)
	return srv
}
