package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClientKill ends other connections by each of their marks, and never its own unless asked to.
func TestClientKill(t *testing.T) {
	t.Parallel()
	srv := start(t)
	admin := dial(t, srv.addr)
	victim := func() (c *conn, id string) {
		c = dial(t, srv.addr)
		return c, strings.TrimSpace(strings.TrimPrefix(c.do("CLIENT", "ID"), ":"))
	}
	for _, test := range []struct {
		how  func(c *conn, id string) []string
		want string
	}{
		{func(c *conn, _ string) []string { return []string{c.LocalAddr().String()} }, "+OK\r\n"},
		{func(_ *conn, id string) []string { return []string{"ID", id} }, ":1\r\n"},
		{func(c *conn, _ string) []string { return []string{"ADDR", c.LocalAddr().String()} }, ":1\r\n"},
		{func(_ *conn, _ string) []string { return []string{"LADDR", srv.addr} }, ":1\r\n"},
		{func(_ *conn, _ string) []string { return []string{"TYPE", "normal"} }, ":1\r\n"},
		{func(_ *conn, _ string) []string { return []string{"USER", "default"} }, ":1\r\n"},
		{func(_ *conn, id string) []string { return []string{"ID", id, "TYPE", "normal", "SKIPME", "yes"} }, ":1\r\n"},
	} {
		c, id := victim()
		args := append([]string{"CLIENT", "KILL"}, test.how(c, id)...)
		if got := admin.do(args...); got != test.want {
			t.Errorf("%q: %q, want %q", args, got, test.want)
		}
		c.closed()
	}
	c, id := victim()
	if got := admin.do("CLIENT", "KILL", "ID", id, "ADDR", "1.2.3.4:5"); got != ":0\r\n" {
		t.Errorf("two marks of which one is another's: %q", got)
	}
	if got := c.do("PING"); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	if got := c.do("CLIENT", "KILL", "ID", id, "SKIPME", "no"); got != ":1\r\n" {
		t.Errorf("itself: %q", got)
	}
	c.closed()
}

// TestClientList finds the connections by name and by id.
func TestClientList(t *testing.T) {
	t.Parallel()
	srv := start(t)
	a, b := dial(t, srv.addr), dial(t, srv.addr)
	a.do("CLIENT", "SETNAME", "first")
	b.do("CLIENT", "SETNAME", "second")
	b.do("CLIENT", "SETINFO", "LIB-NAME", "lib")
	b.do("CLIENT", "SETINFO", "LIB-VER", "1.2.3")
	list, _ := bulk(a.do("CLIENT", "LIST"))
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, " name=first ") || !strings.Contains(list, " name=second ") || !strings.Contains(list, "addr="+b.LocalAddr().String()+" ") {
		t.Errorf("CLIENT LIST: %s", list)
	}
	info, _ := bulk(b.do("CLIENT", "INFO"))
	for _, want := range []string{"name=second ", "lib-name=lib ", "lib-ver=1.2.3", "cmd=client|info", "user=default", "laddr=" + srv.addr + " "} {
		if !strings.Contains(info, want) {
			t.Errorf("no %s in CLIENT INFO: %s", want, info)
		}
	}
	id := strings.TrimSpace(strings.TrimPrefix(b.do("CLIENT", "ID"), ":"))
	if one, _ := bulk(a.do("CLIENT", "LIST", "ID", id)); strings.Count(one, "\n") != 1 || !strings.HasPrefix(one, "id="+id+" ") {
		t.Errorf("CLIENT LIST ID %s: %s", id, one)
	}
	for _, args := range [][]string{{"SETINFO", "LIB-NAME", "a b"}, {"SETINFO", "LIB-NAME"}, {"SETINFO", "NOSUCH", "x"}, {"NO-TOUCH", "x"}, {"NO-TOUCH"}} {
		if got := a.do(append([]string{"CLIENT"}, args...)...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("CLIENT %q: %q", args, got)
		}
	}
	for _, args := range [][]string{{"NO-TOUCH", "ON"}, {"NO-TOUCH", "off"}, {"NO-EVICT", "on"}} {
		if got := a.do(append([]string{"CLIENT"}, args...)...); got != "+OK\r\n" {
			t.Errorf("CLIENT %q: %q", args, got)
		}
	}
}

// TestMonitor sees what another connection does, in order and quoted.
func TestMonitor(t *testing.T) {
	t.Parallel()
	srv := start(t)
	monitor, c := dial(t, srv.addr), dial(t, srv.addr)
	if got := monitor.do("MONITOR"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	c.do("CL.THROTTLE", "k\r\n\x00\"", "15", "30", "60")
	c.do("NOSUCH")
	c.do("PING")
	for _, want := range []string{`"CL.THROTTLE" "k\r\n\x00\"" "15" "30" "60"`, `"PING"`} {
		if got := monitor.reply(); !strings.HasPrefix(got, "+") || !strings.HasSuffix(got, fmt.Sprintf(" [0 %s] %s\r\n", c.LocalAddr(), want)) {
			t.Errorf("MONITOR shows %q, want %s", got, want)
		}
	}
	monitor.send(frame("RESET"))
	if got := monitor.reply(); got != "+RESET\r\n" {
		t.Errorf("RESET: %q", got)
	}
	c.do("PING")
	if got := monitor.do("ECHO", "quiet"); got != "$5\r\nquiet\r\n" {
		t.Errorf("after RESET: %q", got)
	}
}

// TestSlowlog notes slow commands, here all.
func TestSlowlog(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "3").addr)
	for range 10 {
		c.do("CL.THROTTLE", "k", "15", "30", "60")
	}
	if got := c.do("SLOWLOG", "LEN"); got != ":3\r\n" {
		t.Errorf("SLOWLOG LEN: %q", got)
	}
	if got := c.do("SLOWLOG", "GET", "2"); !strings.HasPrefix(got, "*2\r\n*6\r\n:") || !strings.Contains(got, "$11\r\nCL.THROTTLE\r\n") {
		t.Errorf("SLOWLOG GET 2: %q", got)
	}
	c.do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
	c.do("SLOWLOG", "RESET")
	c.do("PING")
	if got := c.do("SLOWLOG", "LEN"); got != ":0\r\n" {
		t.Errorf("SLOWLOG LEN when switched off: %q", got)
	}
}

// TestDebugSleep works where a flag allows it, and only there.
func TestDebugSleep(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--enable-debug-command", "no"}} {
		if got := dial(t, start(t, flags...).addr).do("DEBUG", "SLEEP", "0"); !strings.HasPrefix(got, "-ERR DEBUG command not allowed.") {
			t.Errorf("%q: %q", flags, got)
		}
	}
	for _, allow := range []string{"yes", "local"} {
		c := dial(t, start(t, "--enable-debug-command", allow).addr)
		began := time.Now()
		if got := c.do("DEBUG", "SLEEP", "0.2"); got != "+OK\r\n" || time.Since(began) < 200*time.Millisecond {
			t.Errorf("%s: %q after %v", allow, got, time.Since(began))
		}
		if got := c.do("DEBUG", "SLEEP", "3601"); got != "-ERR seconds must be at most 3600\r\n" {
			t.Errorf("%s: %q", allow, got)
		}
	}
}

// TestCommandDocs has a line of documentation for each command.
func TestCommandDocs(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t).addr)
	for _, name := range keyList(c.do("COMMAND", "LIST")) {
		if docs := c.do("COMMAND", "DOCS", name); !strings.Contains(docs, "$7\r\nsummary\r\n") {
			t.Errorf("COMMAND DOCS %s: %q", name, docs)
		}
	}
	if got := c.do("COMMAND", "GETKEYS", "CL.THROTTLE", "k", "15", "30", "60"); got != "*1\r\n$1\r\nk\r\n" {
		t.Errorf("COMMAND GETKEYS CL.THROTTLE: %q", got)
	}
}
