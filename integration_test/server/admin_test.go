package server

import (
	"fmt"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// TestClientKill ends other connections by each of their marks, and never its own unless asked to.
func TestClientKill(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	admin := harness.Dial(t, srv.Addr)
	victim := func() (c *harness.Conn, id string) {
		c = harness.Dial(t, srv.Addr)
		return c, strings.TrimSpace(strings.TrimPrefix(c.Do("CLIENT", "ID"), ":"))
	}
	for _, test := range []struct {
		how  func(c *harness.Conn, id string) []string
		want string
	}{
		{func(c *harness.Conn, _ string) []string { return []string{c.LocalAddr().String()} }, "+OK\r\n"},
		{func(_ *harness.Conn, id string) []string { return []string{"ID", id} }, ":1\r\n"},
		{func(c *harness.Conn, _ string) []string { return []string{"ADDR", c.LocalAddr().String()} }, ":1\r\n"},
		{func(_ *harness.Conn, _ string) []string { return []string{"LADDR", srv.Addr} }, ":1\r\n"},
		{func(_ *harness.Conn, _ string) []string { return []string{"TYPE", "normal"} }, ":1\r\n"},
		{func(_ *harness.Conn, _ string) []string { return []string{"USER", "default"} }, ":1\r\n"},
		{func(_ *harness.Conn, id string) []string {
			return []string{"ID", id, "TYPE", "normal", "SKIPME", "yes"}
		}, ":1\r\n"},
	} {
		c, id := victim()
		args := append([]string{"CLIENT", "KILL"}, test.how(c, id)...)
		if got := admin.Do(args...); got != test.want {
			t.Errorf("%q: %q, want %q", args, got, test.want)
		}
		c.Closed()
	}
	c, id := victim()
	if got := admin.Do("CLIENT", "KILL", "ID", id, "ADDR", "1.2.3.4:5"); got != ":0\r\n" {
		t.Errorf("two marks of which one is another's: %q", got)
	}
	if got := c.Do("PING"); got != "+PONG\r\n" {
		t.Errorf("PING: %q", got)
	}
	if got := c.Do("CLIENT", "KILL", "ID", id, "SKIPME", "no"); got != ":1\r\n" {
		t.Errorf("itself: %q", got)
	}
	c.Closed()
}

// TestClientList finds the connections by name and by id.
func TestClientList(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	a, b := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	a.Do("CLIENT", "SETNAME", "first")
	b.Do("CLIENT", "SETNAME", "second")
	b.Do("CLIENT", "SETINFO", "LIB-NAME", "lib")
	b.Do("CLIENT", "SETINFO", "LIB-VER", "1.2.3")
	list, _ := harness.Bulk(a.Do("CLIENT", "LIST"))
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, " name=first ") || !strings.Contains(list, " name=second ") ||
		!strings.Contains(list, "addr="+b.LocalAddr().String()+" ") {
		t.Errorf("CLIENT LIST: %s", list)
	}
	info, _ := harness.Bulk(b.Do("CLIENT", "INFO"))
	for _, want := range []string{
		"name=second ", "lib-name=lib ", "lib-ver=1.2.3", "cmd=client|info", "user=default", "laddr=" + srv.Addr + " ",
	} {
		if !strings.Contains(info, want) {
			t.Errorf("no %s in CLIENT INFO: %s", want, info)
		}
	}
	id := strings.TrimSpace(strings.TrimPrefix(b.Do("CLIENT", "ID"), ":"))
	if one, _ := harness.Bulk(a.Do("CLIENT", "LIST", "ID", id)); strings.Count(one, "\n") != 1 || !strings.HasPrefix(one, "id="+id+" ") {
		t.Errorf("CLIENT LIST ID %s: %s", id, one)
	}
	for _, args := range [][]string{
		{"SETINFO", "LIB-NAME", "a b"}, {"SETINFO", "LIB-NAME"}, {"SETINFO", "NOSUCH", "x"}, {"NO-TOUCH", "x"}, {"NO-TOUCH"},
	} {
		if got := a.Do(append([]string{"CLIENT"}, args...)...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("CLIENT %q: %q", args, got)
		}
	}
	for _, args := range [][]string{{"NO-TOUCH", "ON"}, {"NO-TOUCH", "off"}, {"NO-EVICT", "on"}} {
		if got := a.Do(append([]string{"CLIENT"}, args...)...); got != "+OK\r\n" {
			t.Errorf("CLIENT %q: %q", args, got)
		}
	}
}

// TestMonitor sees what another connection does, in order and quoted.
func TestMonitor(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	monitor, c := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr)
	if got := monitor.Do("MONITOR"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	c.Do("CL.THROTTLE", "k\r\n\x00\"", "15", "30", "60")
	c.Do("NOSUCH")
	c.Do("PING")
	for _, want := range []string{`"CL.THROTTLE" "k\r\n\x00\"" "15" "30" "60"`, `"PING"`} {
		got := monitor.Reply()
		if !strings.HasPrefix(got, "+") || !strings.HasSuffix(got, fmt.Sprintf(" [0 %s] %s\r\n", c.LocalAddr(), want)) {
			t.Errorf("MONITOR shows %q, want %s", got, want)
		}
	}
	monitor.Send(harness.Frame("RESET"))
	if got := monitor.Reply(); got != "+RESET\r\n" {
		t.Errorf("RESET: %q", got)
	}
	c.Do("PING")
	if got := monitor.Do("ECHO", "quiet"); got != "$5\r\nquiet\r\n" {
		t.Errorf("after RESET: %q", got)
	}
}

// TestSlowlog notes slow commands, here all.
func TestSlowlog(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "3").Addr)
	for range 10 {
		c.Do("CL.THROTTLE", "k", "15", "30", "60")
	}
	if got := c.Do("SLOWLOG", "LEN"); got != ":3\r\n" {
		t.Errorf("SLOWLOG LEN: %q", got)
	}
	if got := c.Do("SLOWLOG", "GET", "2"); !strings.HasPrefix(got, "*2\r\n*6\r\n:") || !strings.Contains(got, "$11\r\nCL.THROTTLE\r\n") {
		t.Errorf("SLOWLOG GET 2: %q", got)
	}
	c.Do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
	c.Do("SLOWLOG", "RESET")
	c.Do("PING")
	if got := c.Do("SLOWLOG", "LEN"); got != ":0\r\n" {
		t.Errorf("SLOWLOG LEN when switched off: %q", got)
	}
}

// TestCommandDocs looks for a line of documentation for each command.
func TestCommandDocs(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	for _, name := range harness.KeyList(c.Do("COMMAND", "LIST")) {
		if docs := c.Do("COMMAND", "DOCS", name); !strings.Contains(docs, "$7\r\nsummary\r\n") {
			t.Errorf("COMMAND DOCS %s: %q", name, docs)
		}
	}
	if got := c.Do("COMMAND", "GETKEYS", "CL.THROTTLE", "k", "15", "30", "60"); got != "*1\r\n$1\r\nk\r\n" {
		t.Errorf("COMMAND GETKEYS CL.THROTTLE: %q", got)
	}
}
