package resp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestConfigSetIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("CONFIG SET timeout 7 maxclients 0", "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 1048576 inclusive\r\n")
	c.want("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")
	c.want("CONFIG SET timeout 7 MaxClients 9", "+OK\r\n")
	c.want("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n7\r\n")
	c.want("CONFIG SET port 1", "-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config\r\n")
	c.want("CONFIG SET nosuch 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n")
	c.want("CONFIG SET timeout 1 timeout 2", "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter\r\n")
	c.want("CONFIG SET timeout 1 maxclients", "-ERR syntax error\r\n")
}

// CONFIG GET on another event loop sees all of a CONFIG SET or none of it.
func TestConfigGetSeesWholeSets(t *testing.T) {
	w := newWorld(t, "timeout", "1", "slowlog-max-len", "1")
	get, set := w.connect(), w.connect()
	var setting sync.WaitGroup
	var done atomic.Bool
	setting.Go(func() {
		defer done.Store(true)
		for i := range 20_000 {
			set.want(fmt.Sprintf("CONFIG SET timeout %d slowlog-max-len %[1]d", 1+i%2), "+OK\r\n")
		}
	})
	for !done.Load() {
		reply := get.send("CONFIG GET timeout slowlog-max-len\r\n")
		if strings.Contains(reply, "\r\n1\r\n") && strings.Contains(reply, "\r\n2\r\n") {
			t.Errorf("half of a CONFIG SET: %q", reply)
			break
		}
	}
	setting.Wait()
}

// A value that cannot be read leaves no trace of those before it, and what cannot be brought back (evictions) waits until all
// are in force.
func TestConfigSetOfSeveralLimits(t *testing.T) {
	fill := func(t *testing.T, settings ...string) (*world, *peer) {
		w := newWorld(t, settings...)
		c := w.connect()
		for i := range 50 {
			c.want(fmt.Sprint("SET ", i, " 1800000000000000000"), "+OK\r\n")
		}
		return w, c
	}
	failed := func(name, why string) string {
		return "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why + "\r\n"
	}
	const noInteger = "argument couldn't be parsed into an integer"
	for _, test := range []struct{ set, reply string }{
		{"max-keys 10 timeout abc", failed("timeout", noInteger)},
		{"maxmemory 1k maxclients x", failed("maxclients", noInteger)},
		{"maxmemory 1k max-keys 10 appendonly yes", failed("appendonly", "this needs a restart with --appendonly yes")},
		{"save 1 max-keys 1", failed("save", "Invalid save parameters")},
		{"max-keys 1 appendonly yes timeout x", failed("timeout", noInteger)}, // what cannot be read comes first
		{"maxmemory 1k maxmemory-policy noeviction", "+OK\r\n"},
		{"maxmemory-policy noeviction max-keys 10", "+OK\r\n"},
	} {
		w, c := fill(t)
		c.want("CONFIG SET "+test.set, test.reply)
		w.sweep(0)
		c.want("DBSIZE", ":50\r\n")
	}
	for _, set := range []string{"maxmemory-policy allkeys-lru max-keys 100", "max-keys 100 maxmemory-policy allkeys-lru"} {
		w, c := fill(t, "maxmemory-policy", "noeviction")
		c.want("CONFIG SET max-keys 10", "+OK\r\n")
		c.want("CONFIG SET "+set, "+OK\r\n")
		w.sweep(0)
		c.want("DBSIZE", ":50\r\n")
	}
	_, c := fill(t)
	if got, want := c.do("CONFIG", "SET", "save", "60 1", "timeout", "x"), failed("timeout", noInteger); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if points := c.srv.cfg.savePoints(); len(points) != 0 {
		t.Errorf("save points %v", points)
	}
}

func TestConfigGetGlobs(t *testing.T) {
	c := newWorld(t).connect()
	c.want("CONFIG GET MAX*s save", "*8\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n$8\r\nmax-keys\r\n$7\r\n1000000\r\n$11\r\nmax-waiters\r\n$5\r\n10000\r\n$4\r\nsave\r\n$0\r\n\r\n")
	c.want("CONFIG GET nosuch", "*0\r\n")
}

// The password takes effect for connections that come, and the log does not tell it.
func TestConfigSetPassword(t *testing.T) {
	w := newWorld(t)
	a := w.connect()
	a.want("CONFIG SET requirepass hunter2", "+OK\r\n")
	a.want("PING", "+PONG\r\n")
	w.connect().want("PING", "-"+errNoAuth+"\r\n")
	a.want("CONFIG SET timeout 5 maxclients 10000", "+OK\r\n")
	for _, line := range []string{"name=requirepass value=(secret) client=127.0.0.1:4711\n", "name=timeout value=5 client=127.0.0.1:4711\n"} {
		if !strings.Contains(w.log.String(), `msg="setting changed" `+line) {
			t.Errorf("no %s in the log: %s", line, w.log)
		}
	}
	if strings.Contains(w.log.String(), "hunter2") || strings.Contains(w.log.String(), "maxclients") {
		t.Errorf("the log has the password, or what has not changed: %s", w.log)
	}
}

func TestConfigSetReachesTheStore(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("SET a 1800000000000000000", "+OK\r\n")
	c.want("SET b 1800000000000000000", "+OK\r\n")
	c.want("CONFIG SET max-keys 1", "+OK\r\n")
	w.sweep(0)
	c.want("DBSIZE", ":1\r\n")
}

func TestValues(t *testing.T) {
	cfg := NewConfig()
	for _, c := range []struct{ name, text, want string }{
		{"maxmemory", "0", "0"}, {"maxmemory", "1k", "1000"}, {"maxmemory", "1KB", "1024"}, {"maxmemory", "2mb", "2097152"}, {"maxmemory", "1g", "1000000000"},
		{"maxmemory", "-1", ""}, {"maxmemory", "1.5gb", ""}, {"maxmemory", "99999999999gb", ""}, {"maxmemory", "", ""}, {"maxmemory", "b", ""},
		{"port", "65535", "65535"}, {"port", "65536", ""}, {"port", "-1", ""}, {"port", "", ""},
		{"protected-mode", "NO", "no"}, {"protected-mode", "maybe", ""},
		{"maxmemory-policy", "noeviction", "noeviction"}, {"maxmemory-policy", "volatile-lru", ""},
		{"unixsocketperm", "770", "770"}, {"unixsocketperm", "9", ""}, {"unixsocketperm", "7777", ""},
		{"port", "1_0", ""}, {"port", "0x10", ""}, {"port", "+5", ""}, {"port", "007", ""}, {"maxmemory", "1_0", ""}, {"maxmemory", "0x10", ""}, {"maxmemory", "+1", ""},
		{"slowlog-log-slower-than", "1e3", ""}, {"save", "1_0 1", ""}, {"save", "inf 1", ""}, {"unixsocketperm", "0o7", ""}, {"unixsocketperm", "7_0", ""},
		{"bind", "0.0.0.0, ::", "0.0.0.0 ::"}, {"bind", " ", ""}, {"bind", "-", ""}, {"bind", "a,,b", ""}, {"bind", "::", ""}, {"bind", "-::", ""},
		{"bind", "fe80::1%eth0 -limiter-1.example_2", "0.0.0.0 :: fe80::1%eth0 -limiter-1.example_2"},

		// An empty text is none of these, rather than a setting that was not given: a script's variable is not set, say.
		{"unixsocketperm", "", ""}, {"requirepass-file", "", ""}, {"policies", "", ""}, {"dir", "", ""}, {"dbfilename", "", ""}, {"appendfilename", "", ""},
		{"maxmemory-policy", "", ""}, {"protected-mode", "", ""},

		{"dbfilename", "a.rdb", "a.rdb"}, {"dbfilename", ".", ""}, {"dbfilename", "..", ""}, {"dbfilename", "a/b", ""}, {"dbfilename", "/a", ""}, {"dbfilename", "a/", ""},
	} {
		row := cfg.row(c.name)
		before := row.Value.String()
		err := row.Value.Set(c.text)
		if got := row.Value.String(); (err == nil) != (c.want != "") || err == nil && got != c.want || err != nil && got != before {
			t.Errorf("%s %q: %q, %v; want %q", c.name, c.text, got, err, c.want)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "password")
	load := func(text string, given ...string) (string, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := NewConfig()
		_ = cfg.row("requirepass-file").Value.Set(path)
		err := cfg.Load(func(name string) bool { return len(given) > 0 && given[0] == name })
		return cfg.requirePass.Get(), err
	}
	if got, err := load("se cret\r\n"); got != "se cret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := load("\n"); err == nil {
		t.Error("an empty file is taken for a password")
	}
	if _, err := load("x", "requirepass"); err == nil {
		t.Error("two passwords are taken")
	}
	cfg := NewConfig()
	_ = cfg.row("requirepass-file").Value.Set(filepath.Join(dir, "nosuch"))
	if err := cfg.Load(func(string) bool { return false }); err == nil {
		t.Error("a missing file is taken for no password")
	}
}
