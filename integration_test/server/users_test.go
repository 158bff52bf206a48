package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestUsersPage starts celld with the file of docs/how-to/users.md, and has each user do what the page says that it may and may not.
func TestUsersPage(t *testing.T) {
	t.Parallel()
	page := celldtest.ReadFile(t, "../../docs/how-to/users.md")
	file := regexp.MustCompile("(?s)```text\n(user .*?)```").FindStringSubmatch(page)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(page, -1)
	if file == nil || len(rows) != 4 {
		t.Fatalf("%q, %q", file, rows)
	}
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte(file[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := harness.Start(t, "--aclfile", path)
	if got := harness.Dial(t, srv.Addr).Do("PING"); got != "-NOAUTH Authentication required.\r\n" {
		t.Errorf("who does not authenticate: %q", got)
	}
	_, port := harness.HostPort(srv.Addr)
	if _, stderr, code := harness.RunToEnd(t, []string{"CELLD_REQUIREPASS=default-secret"}, "ready", "--port", port); code != 0 {
		t.Errorf("a probe: exit code %d, %s", code, stderr)
	}
	for _, row := range rows {
		user := row[1]
		c := harness.Dial(t, srv.Addr)
		if got := c.Do("AUTH", user, user+"-secret"); got != "+OK\r\n" {
			t.Errorf("%s: %q", user, got)
			continue
		}
		for i, commands := range row[2:] {
			spans := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(commands, -1)
			if len(spans) < 3 {
				t.Errorf("%s: %q", user, commands)
			}
			for _, span := range spans {
				got := c.Do(strings.Fields(span[1])...)
				if refused := strings.HasPrefix(got, "-NOPERM "); refused != (i == 1) || got[0] == '-' && !refused {
					t.Errorf("%s, %s: %q", user, span[1], got)
				}
			}
		}
	}
}

// Each mistake of a file is one line that says where, without the password beside it.
func TestABadACLFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"user a on >sesame\nuser b >sesame +nosuch\n": ":2: Error in applying operation '+nosuch': Unknown command or category name in ACL",
		"\n\nuser a >sesame nosuch-sesame":            ":3: Syntax error",
		"sesame\nuser a on\nuser b onn\n":             ":1 should start with user keyword followed by the username\n:3: Syntax error",
		"sesame":                                      ":1 should start with user keyword followed by the username",
	} {
		path := filepath.Join(dir, "users.acl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--aclfile", path)
		if code != 2 || stderr != "celld: "+path+strings.ReplaceAll(want, "\n", "\ncelld: "+path)+"\n" {
			t.Errorf("%q: exit code %d, %q", text, code, stderr)
		}
	}
	_, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--aclfile", filepath.Join(dir, "none"))
	if code != 2 || !strings.Contains(stderr, dir+"/none': No such file or directory") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// The password of the default user is that of its file, or, where the file does not describe it, requirepass.
func TestACLFileAndRequirepass(t *testing.T) {
	t.Parallel()
	for text, password := range map[string]string{"user a on >p +get": "required", "user default on >own ~* +@all": "own"} {
		path := filepath.Join(t.TempDir(), "users.acl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		srv := harness.Start(t, "--aclfile", path, "--requirepass", "required")
		c := harness.Dial(t, srv.Addr)
		for range 2 {
			c.Do("RESET")
			if got := c.Do("PING"); got != "-NOAUTH Authentication required.\r\n" {
				t.Errorf("%q: %q", text, got)
			}
			if got := c.Do("AUTH", password); got != "+OK\r\n" {
				t.Errorf("%q: %q", text, got)
			}
			if got := c.Do("ACL", "LOAD"); got != "+OK\r\n" {
				t.Errorf("%q: %q", text, got)
			}
		}
		if warned := strings.Contains(srv.Log.String(), "requirepass, which is ignored"); warned != (password == "own") {
			t.Errorf("%q: %s", text, srv.Log)
		}
	}
}

// Probes use a user of their own while the user default is off. Neither CONFIG GET nor an error shows the password.
func TestProbesOfAnotherUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.acl")
	err := os.WriteFile(path, []byte("user default off\nuser probe on >sesame +ping +info\nuser all on >x +@all ~*"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	srv := harness.Start(t, "--aclfile", path, "--probe-user", "probe", "--probe-password", "sesame")
	_, port := harness.HostPort(srv.Addr)
	for _, command := range []string{"ping", "ready"} {
		stdout, stderr, code := harness.RunToEnd(t, []string{"CELLD_PROBE_USER=probe", "CELLD_PROBE_PASSWORD=sesame"}, command,
			"--port", port)
		if code != 0 || stdout != "" {
			t.Errorf("%s: exit code %d, %q, %q", command, code, stdout, stderr)
		}
	}
	_, stderr, code := harness.RunToEnd(t, nil, "ready", "--port", port, "--probe-user", "probe", "--requirepass", "wrong-one")
	if code != 1 || !strings.Contains(stderr, "-WRONGPASS ") || strings.Contains(stderr, "wrong-one") {
		t.Errorf("a wrong password: exit code %d, %q", code, stderr)
	}
	c := harness.Dial(t, srv.Addr)
	c.Do("AUTH", "all", "x")
	if got := c.Do("CONFIG", "GET", "probe-password"); strings.Contains(got, "sesame") || !strings.Contains(got, "(secret)") {
		t.Errorf("%q", got)
	}
}

// A server whose user default may not PING, or is off, is alive, and not ready.
func TestProbesOfAUserWithoutRights(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{"user default on nopass": "-NOPERM ", "user default off": "-NOAUTH "} {
		path := filepath.Join(t.TempDir(), "users.acl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, port := harness.HostPort(harness.Start(t, "--aclfile", path).Addr)
		if stdout, stderr, code := harness.RunToEnd(t, nil, "ping", "--port", port); code != 0 || !strings.HasPrefix(stdout, says) {
			t.Errorf("%s: exit code %d, %q, %q", text, code, stdout, stderr)
		}
		if _, stderr, code := harness.RunToEnd(t, nil, "ready", "--port", port); code != 1 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, %q", text, code, stderr)
		}
	}
}

// TestUsersOfThePages: the users of docs/how-to/users.md may send what the how-to pages tell applications, monitoring and operators to
// send. ACL DRYRUN answers whether they may.
func TestUsersOfThePages(t *testing.T) {
	t.Parallel()
	page := celldtest.ReadFile(t, "../../docs/how-to/users.md")
	file := filepath.Join(t.TempDir(), "users.acl")
	users := regexp.MustCompile("(?s)```text\n(user .*?)```").FindStringSubmatch(page)[1]
	celldtest.WriteFile(t, strings.ReplaceAll(users, "~app:*", "~*")+"user boss on nopass ~* +@all\n", file)
	c := harness.Dial(t, harness.Start(t, "--aclfile", file).Addr)
	if got := c.Do("AUTH", "boss", ""); got != "+OK\r\n" {
		t.Fatal(got)
	}
	app := regexp.MustCompile(`^CL\.(TAKE|MTAKE|THROTTLE|GIVE|RESET|RELEASE|RENEW|SETTLE|SHOW|EXPLAIN) \S+ `)
	looks := regexp.MustCompile(`^(CL\.TOP|CL\.STATS|CL\.POLICY LIST|CL\.RULE LIST|INFO|SLOWLOG GET|CLIENT LIST)( |$)`)
	changes := regexp.MustCompile(`^(CL\.POLICY (SET \S+ \S|SAVE)|CL\.RULE (ADD|DEL) |CONFIG SET \S+ \S|CLIENT KILL)`)
	commands := regexp.MustCompile("(?m)(?:`|redis-cli )([A-Z][A-Z.]+ ?[^`\n#|]*)")
	asked := map[string]int{}
	for path := range strings.FieldsSeq("login queue lock crawler tokens plans wishes incidents monitor troubleshoot") {
		text := celldtest.ReadFile(t, "../../docs/how-to", path+".md")
		for _, found := range commands.FindAllStringSubmatch(text, -1) {
			command := strings.TrimSpace(found[1])
			var may, mayNot string
			switch {
			case app.MatchString(command + " "):
				may, mayNot = "app", "monitor"
			case looks.MatchString(command):
				may, mayNot = "monitor", "app"
			case changes.MatchString(command):
				may, mayNot = "operator", "app"
			default:
				continue
			}
			asked[may]++
			words := strings.Fields(command)
			if got := c.Do(append([]string{"ACL", "DRYRUN", may}, words...)...); got != "+OK\r\n" {
				t.Errorf("%s: %s may not %q: %q", path, may, words, got)
			}
			if got := c.Do(append([]string{"ACL", "DRYRUN", mayNot}, words...)...); got == "+OK\r\n" {
				t.Errorf("%s: %s may %q", path, mayNot, words)
			}
		}
	}
	if asked["app"] < 40 || asked["monitor"] < 5 || asked["operator"] < 15 {
		t.Errorf("asked: %v", asked)
	}
}
