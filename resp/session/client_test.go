package session

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"celld/resp/command"
	"celld/resp/command/connection"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

func TestClientReply(t *testing.T) {
	c := newWorld(t).connect()
	if got := c.send("CLIENT REPLY SKIP\r\nPING\r\nECHO a\r\n"); got != "$1\r\na\r\n" {
		t.Errorf("skip: %q", got)
	}
	got := c.send("CLIENT REPLY OFF\r\nPING\r\nNOSUCH\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\nPING\r\n")
	if got != "+OK\r\n+PONG\r\n" {
		t.Errorf("off, on: %q", got)
	}
	for _, empty := range []string{"\r\n", "  \r\n", "*0\r\n", "*-1\r\n"} { // is the one command without a reply
		if got := c.send("CLIENT REPLY SKIP\r\n" + empty + "PING\r\n"); got != "+PONG\r\n" {
			t.Errorf("skip, %q: %q", empty, got)
		}
	}
	if got := c.send("CLIENT REPLY SKIP\r\nRESET\r\nPING\r\nCLIENT REPLY OFF\r\nRESET\r\n"); got != "+PONG\r\n+RESET\r\n" {
		t.Errorf("skip, RESET: %q", got)
	}
}

// A peer that wants no replies gets none for what ends its connection either.
func TestClientReplyAndTheEnd(t *testing.T) {
	protocolError := "-ERR Protocol error: expected '$', got ':'\r\n"
	for raw, want := range map[string]string{
		"CLIENT REPLY OFF\r\n*1\r\n:x\r\n":              "",
		"CLIENT REPLY SKIP\r\n*1\r\n:x\r\n":             "",
		"CLIENT REPLY SKIP\r\nPING\r\n*1\r\n:x\r\n":     protocolError,
		"CLIENT REPLY OFF\r\nBOOM\r\n":                  "",
		"CLIENT REPLY SKIP\r\nBOOM\r\n":                 "",
		"CLIENT REPLY SKIP\r\nPING\r\nPING\r\nBOOM\r\n": "+PONG\r\n-" + door.ErrInternal + "\r\n",
	} {
		w := newWorld(t)
		w.Commands.Add(&command.Row{Name: "boom", Arity: 1, Run: onSession(func(*Session, [][]byte) { panic("at the disco") })})
		c := w.connect()
		if got := c.send(raw); got != want || !c.tr.Closed {
			t.Errorf("%q: %q, closed %v; want %q", raw, got, c.tr.Closed, want)
		}
	}
}

func TestClientList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.connect(), w.connect()
	a.want("CLIENT SETNAME first", "+OK\r\n")
	a.want("CLIENT SETINFO LIB-NAME mylib", "+OK\r\n")
	a.want("CLIENT SETINFO LIB-VER 1.2", "+OK\r\n")
	a.want("MULTI", "+OK\r\n")
	w.sleepMS(5000)
	list := b.do("CLIENT", "LIST")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 3 { // the length, and two clients
		t.Fatalf("%q", list)
	}
	for _, field := range []string{"id=1 ", "addr=127.0.0.1:4711 ", "laddr=127.0.0.1:6379 ", "name=first ", "age=5 ", "idle=5 ",
		"flags=x ", "multi=0 ",
		"cmd=multi ", "resp=2 ", "lib-name=mylib ", "lib-ver=1.2"} {
		if !strings.Contains(lines[1], field) {
			t.Errorf("%q is not in %s", field, lines[1])
		}
	}
	if !strings.Contains(lines[2], "cmd=client|list") || !strings.Contains(lines[2], "idle=0 ") {
		t.Error(lines[2])
	}
	if got := b.do("CLIENT", "LIST", "ID", "1"); !strings.Contains(got, "id=1 ") || strings.Contains(got, "id=2 ") {
		t.Errorf("by id: %q", got)
	}
	b.want("CLIENT LIST TYPE pubsub", "$0\r\n\r\n")
	b.want("CLIENT SETNAME bad\x01name", "-"+connection.ErrClientName+"\r\n")
}

func TestClientKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.connect(), w.connect()
	a.want("CLIENT KILL ID 2", ":1\r\n")
	if !b.tr.Closed {
		t.Error("the killed client stays")
	}
	a.want("CLIENT KILL ID 99", ":0\r\n")
	a.want("CLIENT KILL 1.2.3.4:5", "-"+connection.ErrNoSuchClient+"\r\n")
	a.want("CLIENT KILL ADDR 127.0.0.1:4711 SKIPME yes USER nobody", "-ERR No such user 'nobody'\r\n")
	a.want("CLIENT KILL 127.0.0.1:4711", "+OK\r\n")
	if !a.tr.Closed {
		t.Error("a client that kills itself stays")
	}
}

// With NO-TOUCH on, a key's use does not save it from eviction.
func TestClientNoTouch(t *testing.T) {
	w := newWorld(t, "max-keys", "2")
	c := w.connect()
	c.want("CL.THROTTLE a 0 1 60", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")
	c.want("CL.THROTTLE b 0 1 60", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")
	c.want("CLIENT NO-TOUCH on", "+OK\r\n")
	c.want("GET a", "$19\r\n1790000060000000000\r\n")
	c.want("CLIENT NO-TOUCH off", "+OK\r\n")
	c.want("SET c 1800000000000000000", "+OK\r\n")
	c.want("EXISTS a", ":0\r\n")
	c.want("EXISTS b", ":1\r\n")
}

func TestReset(t *testing.T) {
	w := newWorld(t, "requirepass", "secret")
	c := w.connect()
	c.want("PING", "-"+errNoAuth+"\r\n")
	if got := c.do("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "n"); !strings.HasPrefix(got, "%7\r\n") {
		t.Fatalf("HELLO: %q", got)
	}
	c.want("CLIENT GETNAME", "$1\r\nn\r\n")
	c.want("WATCH k", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("RESET", "+RESET\r\n")
	line := c.client.Line(c.nowNS)
	if !strings.Contains(line, " multi=-1 ") || !strings.Contains(line, " flags=N ") || w.Clients.Watching() != 0 {
		t.Errorf("after RESET: %s, %d watches", line, w.Clients.Watching())
	}
	c.want("PING", "-"+errNoAuth+"\r\n")
	c.want("AUTH secret", "+OK\r\n")
	c.want("CLIENT GETNAME", "$-1\r\n")
	c.want("EXEC", "-"+errExecNoMulti+"\r\n")
}

func TestAuth(t *testing.T) {
	c := newWorld(t, "requirepass", "secret").connect()
	c.want("AUTH wrong", "-"+connection.ErrWrongPass+"\r\n")
	c.want("AUTH default secretx", "-"+connection.ErrWrongPass+"\r\n")
	c.want("AUTH nobody secret", "-"+connection.ErrWrongPass+"\r\n")
	c.want("HELLO 2", "-"+connection.ErrHelloNoAuth+"\r\n")
	c.want("HELLO 3 AUTH default wrong", "-"+connection.ErrWrongPass+"\r\n")
	c.want("GET", "-ERR wrong number of arguments for 'get' command\r\n")
	c.want("AUTH default secret", "+OK\r\n")
	c.want("PING", "+PONG\r\n")
}

// CLIENT LIST shows what others have not read, what they have sent in part, and what they have queued.
func TestClientsAreShown(t *testing.T) {
	w := newWorld(t)
	local := &net.UnixAddr{Name: "/run/celld.sock", Net: "unix"}
	s, _ := w.NewSession(&net.UnixAddr{Net: "unix"}, local)
	s.Open(&sessiontest.Conn{}, 7)
	s.Serve([]byte("MONITOR\r\nCLIENT TRACKING ON\r\nMULTI\r\nPING\r\nECHO abc\r\nEC"))
	s.Unsent(300)
	p := w.connect()
	w.sleepMS(2_999)
	got := p.do("CLIENT", "LIST", "ID", "1")
	pushed := s.client.Bytes() - 1024 - 2 - int64(s.tx.bytes) - 300
	want := fmt.Sprintf("id=1 addr=/run/celld.sock:0 laddr=/run/celld.sock:0 fd=7 name= age=2 idle=2 flags=OxtU db=0 sub=0 psub=0 ssub=0 multi=2 qbuf=2 qbuf-free=0 argv-mem=0 multi-mem=%d "+
		"rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=multi user=default redir=0 resp=2 lib-name= lib-ver=\n\r\n", s.tx.bytes,
		300+pushed, 1024+2+int64(s.tx.bytes)+300+pushed)
	if _, got, _ = strings.Cut(got, "\r\n"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if s.tx.bytes < len("PINGECHOabc") || p.do("INFO", "clients") != "$167\r\n# Clients\r\nconnected_clients:2\r\ncluster_connections:0\r\nmaxclients:10000\r\nblocked_clients:0\r\nwaiting_keys:0\r\ntracking_clients:1\r\nmonitor_clients:1\r\nwatching_clients:0\r\n\r\n" {
		t.Errorf("%d bytes are queued; %s", s.tx.bytes, p.do("INFO", "clients"))
	}
	if got := s.client.MonitorAddr() + " " + p.client.MonitorAddr(); got != "unix:/run/celld.sock:0 127.0.0.1:4711" {
		t.Errorf("monitors show %s", got)
	}
	p.want("WATCH k", "+OK\r\n")
	if got := p.do("INFO", "clients"); !strings.Contains(got, "watching_clients:1\r\n") {
		t.Error(got)
	}
	s.Closed()
	if got := p.do("INFO", "clients"); !strings.Contains(got, "connected_clients:1\r\n") ||
		!strings.Contains(got, "monitor_clients:0\r\n") || !strings.Contains(got, "tracking_clients:0\r\n") {
		t.Error(got)
	}
}
