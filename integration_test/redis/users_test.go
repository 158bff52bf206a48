package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// commonCommands are the full names of the commands that both have, and how many arguments they need.
func commonCommands(t *testing.T, celld, redis *harness.Conn) (names []string, words map[string]int) {
	t.Helper()
	all := func(c *harness.Conn) []string {
		return harness.KeyList(c.Do("COMMAND", "LIST", "FILTERBY", "PATTERN", "*"))
	}
	theirs := all(redis)
	words = map[string]int{}
	for _, name := range all(celld) {
		if !slices.Contains(theirs, name) {
			continue
		}
		fields := strings.Fields(harness.CommandRow(t, redis.Do("COMMAND", "INFO", name)))
		arity, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(fields)
		}
		names, words[name] = append(names, name), max(arity, -arity)
	}
	if len(names) < 130 {
		t.Fatalf("only %d commands are of both", len(names))
	}
	return names, words
}

// TestRedisCategories compares what is in each category, of the commands that both have.
func TestRedisCategories(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	names, _ := commonCommands(t, celld, redis)
	in := func(c *harness.Conn, category string) (list []string) {
		for _, name := range harness.KeyList(c.Do("ACL", "CAT", category)) {
			if slices.Contains(names, name) {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		return list
	}
	categories := harness.KeyList(redis.Do("ACL", "CAT"))
	got := harness.KeyList(celld.Do("ACL", "CAT"))
	if !slices.Equal(got, slices.Sorted(slices.Values(append([]string{"celld", "limits"}, categories...)))) {
		t.Errorf("ACL CAT: %q, in Redis %q", got, categories)
	}
	for _, category := range categories {
		if got, want := in(celld, category), in(redis, strings.ToUpper(category)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, in Redis %q", category, got, want)
		}
	}
	for _, name := range harness.KeyList(celld.Do("ACL", "CAT", "celld")) {
		if !strings.HasPrefix(name, "cl.") {
			t.Errorf("%s is in celld's own category", name)
		}
	}
}

// TestRedisRights applies the same rules to both, at random, and asks both for each command whether the user may run it. The rules
// that celld prints make the same rights in Redis.
func TestRedisRights(t *testing.T) {
	t.Parallel()
	random := celldtest.NewRand(t)
	celld, redis := startRedisPair(t)
	names, words := commonCommands(t, celld, redis)
	categories := harness.KeyList(redis.Do("ACL", "CAT"))
	rule := func() string {
		sign := []string{"+", "-"}[random.IntN(2)]
		switch random.IntN(12) {
		case 0:
			return sign + "@all"
		case 1, 2, 3, 4:
			return sign + "@" + categories[random.IntN(len(categories))]
		case 5:
			return []string{"+select|a", "+ping|a", "+get|a"}[random.IntN(3)]
		}
		return sign + names[random.IntN(len(names))]
	}
	const users = 15
	for i := range users {
		for _, who := range []*harness.Conn{celld, redis} {
			who.Do("ACL", "SETUSER", "u", "reset", "allkeys")
		}
		var rules []string
		for range 1 + random.IntN(12) {
			rules = append(rules, rule())
		}
		set := append([]string{"ACL", "SETUSER", "u"}, rules...)
		if got, want := celld.Do(set...), redis.Do(set...); got != want || got != "+OK\r\n" {
			t.Fatalf("%q: %q, in Redis %q", rules, got, want)
		}
		says := strings.Fields(harness.Pairs(t, celld.Do("ACL", "GETUSER", "u"))["commands"])
		if got := redis.Do(append([]string{"ACL", "SETUSER", "again", "reset", "allkeys"}, says...)...); got != "+OK\r\n" {
			t.Fatalf("%q: %q", says, got)
		}
		for _, name := range names {
			args := strings.Split(name, "|")
			for len(args) < words[name] {
				args = append(args, "a")
			}
			ask := func(user string) []string { return append([]string{"ACL", "DRYRUN", user}, args...) }
			got, want := celld.Do(ask("u")...), redis.Do(ask("u")...)
			if got != want {
				t.Errorf("user %d, %q, %q: %q, in Redis %q", i, rules, args, got, want)
			}
			if again := redis.Do(ask("again")...); again != want {
				t.Errorf("%q are said to be %q; %q: %q, in Redis %q", rules, says, args, want, again)
			}
		}
	}
}

// TestRedisGenPass checks that passwords are as long as Redis's, and each of them new, and that errors are the same.
func TestRedisGenPass(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	seen := map[string]bool{}
	for _, args := range [][]string{{}, {"1"}, {"5"}, {"255"}, {"256"}, {"4096"}, {"0"}, {"-1"}, {"4097"}, {"x"}, {"1", "2"}} {
		call := append([]string{"ACL", "GENPASS"}, args...)
		got, want := celld.Do(call...), redis.Do(call...)
		if got[0] != '$' && got != want || len(got) != len(want) || got[0] == '$' && len(got) > 60 && seen[got] {
			t.Errorf("%q: %q, in Redis %q", call, got, want)
		}
		seen[got] = true
	}
}

// TestRedisACLFile gives both servers the same files to read, good and bad, and what the other has saved.
func TestRedisACLFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.acl")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("")
	celld := harness.Dial(t, harness.Start(t, "--aclfile", path, "--watch", "no").Addr)
	redis := harness.Dial(t, celldtest.StartRedis(t, "--aclfile", path))
	both := func(about string, args ...string) {
		t.Helper()
		if got, want := celld.Do(args...), redis.Do(args...); got != want {
			t.Errorf("%q, %q: %q, in Redis %q", about, args, got, want)
		}
	}
	for _, text := range []string{
		"user a on >secret ~a:* +get", "\n\n  user a on \r\n\tuser b  +@read  ~x\n", "user default on nopass ~* &* +@all",
		"user a +nosuch", "user a +nosuch +@neither >x #bad ~* ~x\nuser b +nosuch", "user a on\nuser a off", "user", "nouser a",
		"# comment", "User a on", "user a\tb on", "user a #x", "user a !x on", "user a ~* ~x", "user a %X~y", "user a on\t +get\t",
		"user a +config|get|x\n\n\nuser", "user a >secret nosuch", "user  on", "user a on sanitize-payload resetchannels -@all",
		"user a reset on nopass allkeys allchannels allcommands", "",
	} {
		put(text)
		both(text, "ACL", "LOAD")
		both(text, "ACL", "LIST")
		both(text, "ACL", "USERS")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	both("no file", "ACL", "LOAD")
	both("no file", "ACL", "LIST")
	for _, saver := range []*harness.Conn{celld, redis} {
		for _, rules := range [][]string{
			{"a", "reset", "on", ">one", ">two", "~a:*", "%R~b", "-@all", "+@transaction"},
			{"b", "reset", "nopass", "allkeys", "+@all", "-flushall"},
		} {
			both("set", append([]string{"ACL", "SETUSER"}, rules...)...)
		}
		if got := saver.Do("ACL", "SAVE"); got != "+OK\r\n" {
			t.Fatalf("%q", got)
		}
		if text := celldtest.ReadFile(t, path); !strings.Contains(text, "user a on ") || strings.Contains(text, ">") {
			t.Errorf("%q", text)
		}
		both("saved", "ACL", "LOAD")
		both("saved", "ACL", "LIST")
	}
}

// TestRedisUserConnections removes users while others hold connections of theirs.
func TestRedisUserConnections(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.acl")
	const file = "user default on nopass ~* &* +@all\nuser stays on nopass ~* &* +@all\n"
	if err := os.WriteFile(path, []byte(file+"user goes on nopass ~* &* +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, addr := range map[string]string{
		"celld": harness.Start(t, "--aclfile", path).Addr,
		"redis": celldtest.StartRedis(t, "--aclfile", path),
	} {
		admin := harness.Dial(t, addr)
		as := func(user string) *harness.Conn {
			c := harness.Dial(t, addr)
			c.Do("AUTH", user, "x")
			if got := c.Do("ACL", "WHOAMI"); got != fmt.Sprintf("$%d\r\n%s\r\n", len(user), user) {
				t.Fatalf("%s: %q", name, got)
			}
			return c
		}
		gone, kept := as("goes"), as("stays")
		got, _ := harness.Bulk(admin.Do("CLIENT", "LIST"))
		if strings.Count(got, " user=goes ") != 1 || strings.Count(got, " user=default ") != 1 {
			t.Errorf("%s: %s", name, got)
		}
		if got := admin.Do("ACL", "DELUSER", "goes", "nobody"); got != ":1\r\n" {
			t.Errorf("%s: %q", name, got)
		}
		gone.Closed()
		if got := kept.Do("PING"); got != "+PONG\r\n" {
			t.Errorf("%s: %q", name, got)
		}
		admin.Do("ACL", "LOAD") // Redis closes the connection of who stays, too
		gone, other := as("goes"), as("stays")
		if got := admin.Do("CLIENT", "KILL", "USER", "stays", "SKIPME", "yes"); got != ":2\r\n" && name == "celld" || got[0] != ':' {
			t.Errorf("%s: %q", name, got)
		}
		other.Closed()
		if name == "celld" {
			kept = as("stays")
		}
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		admin.Do("ACL", "LOAD")
		gone.Closed()
		if name == "celld" {
			if got := kept.Do("PING"); got != "+PONG\r\n" {
				t.Errorf("who did not change: %q", got)
			}
		}
		if got := admin.Do("PING"); got != "+PONG\r\n" {
			t.Errorf("%s: %q", name, got)
		}
		if err := os.WriteFile(path, []byte(file+"user goes on nopass ~* &* +@all\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedisACLLog compares the log of the same refusals, except ages and the connections' lines.
func TestRedisACLLog(t *testing.T) {
	t.Parallel()
	celld, redis := startRedisPair(t)
	for _, words := range []string{
		"ACL SETUSER a on >p ~a:* +get +multi +exec +eval +auth +acl|log +config|get +hello", "AUTH a wrong", "AUTH a wrong",
		"auth nobody wrong", "HELLO 2 AUTH a x", "AUTH a p", "GET b", "GET b", "get b", "SET a:1 5", "CONFIG SET x y", "config get x",
		"MULTI", "GET b", "SET a:1 5", "EXEC", "AUTH a no",
	} {
		if got, want := celld.Do(strings.Fields(words)...), redis.Do(strings.Fields(words)...); got != want {
			t.Errorf("%s: %q, in Redis %q", words, got, want)
		}
	}
	for _, script := range []string{"return redis.call('GET', 'b')", "return redis.call('PING')"} {
		if got, want := celld.Do("EVAL", script, "0"), redis.Do("EVAL", script, "0"); got != want {
			t.Errorf("%s: %q, in Redis %q", script, got, want)
		}
	}
	read := func(c *harness.Conn, args ...string) (lines []string) {
		before := ""
		for line := range strings.Lines(c.Do(args...)) {
			if line[0] == '$' {
				continue
			}
			if before != "age-seconds\r\n" && before != "client-info\r\n" {
				lines = append(lines, line)
			}
			before = line
		}
		return lines
	}
	for _, args := range [][]string{{"ACL", "LOG"}, {"ACL", "LOG", "3"}, {"ACL", "LOG", "100"}} {
		if got, want := read(celld, args...), read(redis, args...); !slices.Equal(got, want) || len(got) < 3*7*2-4*3 {
			t.Errorf("%q: %q\nin Redis %q", args, got, want)
		}
	}
	for _, c := range []*harness.Conn{celld, redis} {
		if text := c.Do("ACL", "LOG", "1"); !strings.Contains(text, " user=a ") || !strings.Contains(text, " cmd=eval ") && c == celld {
			t.Errorf("%q", text)
		}
	}
}
