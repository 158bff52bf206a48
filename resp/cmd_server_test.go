package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/admin"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/gate"
	"celld/resp/glob"
	"celld/resp/session/sessiontest"
	"celld/resp/stats"
)

func TestMonitorSeesCommandsAndNoSecrets(t *testing.T) {
	w := newWorld(t)
	m, c := w.connect(), w.connect()
	m.want("MONITOR", "+OK\r\n")
	c.do("CL.THROTTLE", "a\n\"k\"\xff", "1", "2", "3")
	c.do("AUTH", "hunter2")
	c.do("HELLO", "3", "AUTH", "default", "hunter2")
	c.do("CONFIG", "SET", "requirepass", "hunter2")
	m.Serve(nil)
	got := m.tr.Take()
	if want := `+1790000000.000000 [0 127.0.0.1:4711] "CL.THROTTLE" "a\n\"k\"\xff" "1" "2" "3"` + "\r\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if strings.Contains(got, "hunter2") || !strings.Contains(got, `"AUTH" "(redacted)"`) {
		t.Errorf("secrets: %s", got)
	}
	m.want("RESET", "+RESET\r\n")
	if w.sessions.Gate.Has(gate.Monitored) {
		t.Error("still monitored after RESET")
	}
}

func TestSlowMonitorIsClosed(t *testing.T) {
	w := newWorld(t, "client-output-buffer-limit", "128kb")
	m, c := w.connect(), w.connect()
	m.want("MONITOR", "+OK\r\n")
	for range 20 {
		c.do("ECHO", strings.Repeat("x", 10_000))
	}
	if !m.tr.Closed {
		t.Error("a monitor that reads nothing stays")
	}
	m.Closed()
	c.want("PING", "+PONG\r\n")
}

func TestSlowlog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slowlog-log-slower-than", "1000", "slowlog-max-len", "2")
	w.sessions.Commands.Add(&command.Row{Name: "slow", Arity: -1, Run: func(c *command.Call) { w.sleepMS(2); c.OK() }})
	c := w.connect()
	for i := range 3 {
		c.do("SLOW", fmt.Sprint(i), strings.Repeat("y", 200))
	}
	c.want("SLOWLOG LEN", ":2\r\n")
	got := c.do("SLOWLOG", "GET", "1")
	want := "*1\r\n*6\r\n:2\r\n:1790000000\r\n:2000\r\n*3\r\n$4\r\nSLOW\r\n$1\r\n2\r\n$147\r\n" + strings.Repeat("y", 128) +
		"... (72 more bytes)"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.want("SLOWLOG RESET", "+OK\r\n")
	c.want("SLOWLOG GET", "*0\r\n")
	c.want("SLOWLOG GET -2", "-"+stats.ErrSlowlogCount+"\r\n")
}

// Below a millisecond every command is timed, fast ones too.
func TestSlowlogOfEverything(t *testing.T) {
	c := newWorld(t, "slowlog-log-slower-than", "0").connect()
	c.send("CL.THROTTLE k 1 1 1\r\nPING\r\n")
	c.want("SLOWLOG LEN", ":2\r\n")
}

func TestInfo(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.do("CL.THROTTLE", "k", "0", "1", "60")
	c.do("NOSUCH")
	c.do("GET")
	info := c.do("INFO", "everything")
	for _, line := range []string{"redis_version:7.2.4", "celld_version:test", "loading:0", "connected_clients:1",
		"db0:keys=1,expires=1,avg_ttl=", "cmdstat_cl.throttle:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
		"cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0", "total_error_replies:2", "keyspace_misses:1",
		"probation_keys:1", "protected_keys:0", "maxmemory_policy:allkeys-lru"} {
		if !strings.Contains(info, "\r\n"+line) {
			t.Errorf("%q is not in %s", line, info)
		}
	}
	if short := c.do("INFO"); strings.Contains(short, "cmdstat_") || !strings.Contains(short, "# Keyspace") {
		t.Errorf("INFO: %s", short)
	}
	if one := c.do("INFO", "keyspace"); strings.Count(one, "#") != 1 {
		t.Errorf("INFO keyspace: %s", one)
	}
	c.want("CONFIG RESETSTAT", "+OK\r\n")
	if info := c.do("INFO", "stats"); !strings.Contains(info, "total_error_replies:0") {
		t.Error("RESETSTAT leaves the counters")
	}
}

func TestShutdownCommand(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"SHUTDOWN": "", "SHUTDOWN NOSAVE": "", "SHUTDOWN SAVE NOW FORCE": "", "SHUTDOWN ABORT": admin.ErrNoShutdown,
		"SHUTDOWN SAVE NOSAVE": argument.ErrSyntax, "SHUTDOWN x": argument.ErrSyntax,
	} {
		w := newWorld(t)
		got := w.connect().do(strings.Fields(command)...)
		stopped := false
		select {
		case <-w.life.stop:
			stopped = true
		default:
		}
		if stopped != (want == "") || want != "" && got != "-"+want+"\r\n" {
			t.Errorf("%s: %q, stopped %v", command, got, stopped)
		}
	}
}

func TestNoEvictionRefusesNewKeys(t *testing.T) {
	w := newWorld(t, "max-keys", "1", "maxmemory-policy", "noeviction")
	c := w.connect()
	c.want("CL.THROTTLE a 0 1 60", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")
	c.want("CL.THROTTLE b 0 1 60", "-"+command.ErrOOMKeys+"\r\n")
	c.want("SET b 1800000000000000000", "-"+command.ErrOOMKeys+"\r\n")
	c.want("CL.THROTTLE a 0 1 60", "*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n")
	c.want("CONFIG SET maxmemory-policy allkeys-lru", "+OK\r\n")
	c.want("CL.THROTTLE b 0 1 60", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")
	c.want("EXISTS a", ":0\r\n")
}

// A reply to KEYS that nobody could take is not gathered.
func TestKeysIsBounded(t *testing.T) {
	w := newWorld(t, "client-output-buffer-limit", "128kb")
	c := w.connect()
	for i := range 3000 {
		c.do("SET", fmt.Sprintf("%060d", i), "1800000000000000000")
	}
	if got := c.do("KEYS", "*"); got != "" || !c.tr.Closed {
		t.Errorf("%d bytes, closed %v", len(got), c.tr.Closed)
	}
}

// Nor is any other that a small request can make large.
func TestRepliesAreBounded(t *testing.T) {
	for name, raw := range map[string]string{
		"COMMAND INFO": sessiontest.Frame(append([]string{"COMMAND", "INFO"}, slices.Repeat([]string{"client"}, spec.ShortList)...)...),
		"EXEC":         "MULTI\r\n" + strings.Repeat("COMMAND DOCS\r\n", 1000) + "EXEC\r\n",
	} {
		w := newWorld(t, "client-output-buffer-limit", "128kb")
		c := w.connect()
		got := c.send(raw)
		if len(got) > 256<<10 || !c.tr.Closed || w.sessions.Stats.OutputLimitCloses.Load() != 1 {
			t.Errorf("%s: %d bytes, closed %v", name, len(got), c.tr.Closed)
		}
	}
	c := newWorld(t).connect()
	one, many := c.do("COMMAND", "DOCS", "get"),
		c.do(append([]string{"COMMAND", "DOCS"}, slices.Repeat([]string{"get"}, spec.ShortList)...)...)
	if one != many {
		t.Errorf("COMMAND DOCS repeats itself: %d bytes", len(many))
	}
}

// Who stops to watch is shown what came before, as in Redis, and is woken when watching again.
func TestMonitorAfterReset(t *testing.T) {
	w := newWorld(t)
	m, c := w.connect(), w.connect()
	const shown = `+1790000000.000000 [0 127.0.0.1:4711] "PING"` + "\r\n"
	m.want("MONITOR", "+OK\r\n")
	if got, want := m.send("PING\r\nRESET\r\n"), "+PONG\r\n"+shown+"+RESET\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.send(""); got != "" {
		t.Errorf("%q after RESET", got)
	}
	m.want("MONITOR", "+OK\r\n")
	wakes := m.tr.Wakes
	c.do("PING")
	if m.tr.Wakes != wakes+1 {
		t.Fatal("not woken")
	}
	if got := m.send(""); got != shown {
		t.Errorf("got %q, want %q", got, shown)
	}
}

// What another had begun to show when a session stopped to watch goes nowhere.
func TestPushAfterReset(t *testing.T) {
	w := newWorld(t)
	m := w.connect()
	m.want("MONITOR", "+OK\r\n")
	m.want("RESET", "+RESET\r\n")
	clientOf(w, m).Push([]byte("late\r\n"), 100)
	m.want("MONITOR", "+OK\r\n")
	wakes := m.tr.Wakes
	clientOf(w, m).Push([]byte("+line\r\n"), 100)
	if got := m.send(""); m.tr.Wakes != wakes+1 || got != "+line\r\n" {
		t.Errorf("%d wakes, %q", m.tr.Wakes-wakes, got)
	}
}

// Every command that takes a pattern bounds one with wildcards other than stars.
func TestLongPatternsAreRefused(t *testing.T) {
	p, long := newWorld(t).connect(), strings.Repeat("?", glob.MaxWild+1)
	p.do("CL.TAKE", "k", "1/1h")
	for _, command := range []string{
		"SCAN 0 MATCH ", "HSCAN k 0 MATCH ", "KEYS ", "CL.POLICY LIST ", "CL.RULE LIST ", "CONFIG GET ", "COMMAND LIST FILTERBY PATTERN ",
	} {
		p.want(command+long, "-ERR a pattern with ? or [ has at most 1024 bytes\r\n")
	}
	p.want("ACL SETUSER u ~"+long, "-ERR Error in ACL SETUSER modifier '~"+long+"': a pattern with ? or [ has at most 1024 bytes\r\n")
}
