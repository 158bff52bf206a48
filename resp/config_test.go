package resp

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"celld/resp/command/admin"
)

func TestConfigSetIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("CONFIG SET timeout 7 maxclients 0",
		"-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 1048576 inclusive\r\n")
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
	w, c := fill(t)
	if got, want := c.do("CONFIG", "SET", "save", "60 1", "timeout", "x"), failed("timeout", noInteger); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if points := w.sessions.Config.SavePoints(); len(points) != 0 {
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
	w.connect().want("PING", "-"+"NOAUTH Authentication required."+"\r\n")
	if strings.Contains(w.log.String(), "hunter2") {
		t.Errorf("the log has the password: %s", w.log)
	}
	for _, row := range w.sessions.Config.Settings() { // by this, the log knows which values are secret
		if row.Secret && row.Mutable && !strings.Contains(row.Name, "pass") {
			t.Errorf("%s: its value would be in the log", row.Name)
		}
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

// More clients than files may be open are refused.
func TestConfigSetMaxClients(t *testing.T) {
	w := newWorld(t)
	reply := "+OK\r\n"
	if err := w.sockets.MayServe(1 << 20); err != nil {
		reply = "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - " + err.Error() + "\r\n"
	}
	p := w.connect()
	p.want("CONFIG SET maxclients 1048576", reply)
	p.want("CONFIG SET maxclients 9", "+OK\r\n")
}

func TestNothingIsSavedWithAnEngine(t *testing.T) {
	w, _ := engineWorld(t, false)
	p := w.connect()
	for _, name := range []string{"SAVE", "BGSAVE", "BGREWRITEAOF", "LASTSAVE"} {
		p.want(name, "-"+fmt.Sprintf(admin.ErrEngineKeeps, name)+"\r\n")
	}
	p.want("SHUTDOWN SAVE", "-"+fmt.Sprintf(admin.ErrEngineKeeps, "SHUTDOWN SAVE")+"\r\n")
	for _, setting := range []string{"save\t60 1", "appendonly\tyes"} {
		got := p.do(append([]string{"CONFIG", "SET"}, strings.Split(setting, "\t")...)...)
		if !strings.Contains(got, "the engine keeps the keys") {
			t.Errorf("%s: %q", setting, got)
		}
	}
	if got := p.do("CONFIG", "SET", "save", "", "appendonly", "no"); got != "+OK\r\n" { // as it is
		t.Errorf("%q", got)
	}
}

// What is near follows the setting.
func TestConfigSetNearLimit(t *testing.T) {
	w := newWorld(t, "near-limit", "70")
	p, near := w.connect(), &w.sessions.Decisions.NearLimit
	if near.Load() != 70 {
		t.Errorf("%d %% at first", near.Load())
	}
	if p.want("CONFIG SET near-limit 100", "+OK\r\n"); near.Load() != 100 {
		t.Errorf("%d %% after CONFIG SET", near.Load())
	}
}
