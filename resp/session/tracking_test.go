package session

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/command/connection"
	"celld/resp/session/sessiontest"
	"celld/resp/wire"
)

// announced is the push that says that keys have changed.
func announced(keys ...string) string {
	return string(wire.AppendCommand([]byte(">2\r\n$10\r\ninvalidate\r\n"), keys...))
}

// track returns a connection that speaks RESP3 and has sent CLIENT TRACKING ON with these options.
func track(w *world, options ...string) *peer {
	c := w.connect()
	c.do("HELLO", "3")
	if got := c.do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...); got != "+OK\r\n" {
		w.t.Fatal(got)
	}
	return c
}

// What a client has read is announced as changed, right behind the reply.
func TestTracking(t *testing.T) {
	w := newWorld(t)
	c := track(w)
	const miss = "_\r\n"
	c.want("GET a", miss+announced("a"))
	c.want("EXISTS a b", ":0\r\n"+announced("a", "b"))
	c.want("OBJECT ENCODING a", miss+announced("a"))
	c.want("CL.TAKE t 5/1h", "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:720000\r\n:1\r\n:0\r\n")
	c.want("GET t", "-"+errWrongType+"\r\n"+announced("t")) // Redis remembers this, too
	c.want("DEL t", ":1\r\n")
	c.want("GET", "-ERR wrong number of arguments for 'get' command\r\n")
	c.want("DBSIZE", ":0\r\n")
	if got := c.do("EVAL", "return redis.call('STRLEN', KEYS[1])", "2", "a", "b"); got != ":0\r\n"+announced("a", "b") { // all of its keys
		t.Errorf("EVAL: %q", got)
	}
	c.want("CLIENT CACHING YES", "-"+connection.ErrCachingYes+"\r\n")
	if got := c.send("GET a\r\nTTL b\r\nPING\r\n"); got != miss+announced("a")+":-2\r\n"+announced("b")+"+PONG\r\n" {
		t.Errorf("in a pipeline: %q", got)
	}
	if got := c.send("CLIENT REPLY SKIP\r\nGET a\r\nCLIENT REPLY OFF\r\nGET a\r\nCLIENT REPLY ON\r\n"); got != "+OK\r\n" {
		t.Errorf("without replies: %q", got)
	}
	c.do("CLIENT", "TRACKING", "OFF")
	c.want("GET a", miss)
	c.do("CLIENT", "TRACKING", "ON")
	c.do("HELLO", "2")
	c.want("GET a", "$-1\r\n")
	c.do("HELLO", "3")
	c.want("GET a", miss+announced("a"))
	c.do("RESET")
	c.do("HELLO", "3")
	c.want("GET a", miss)
}

// The announcements of a transaction follow its whole reply.
func TestTrackingInTransaction(t *testing.T) {
	w := newWorld(t)
	c := track(w, "OPTIN")
	const call = "CLIENT CACHING YES\r\nMULTI\r\nPTTL a\r\nGET a\r\nGET b\r\nSET c 5\r\nEXEC\r\n"
	const begun = "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n:-2\r\n_\r\n_\r\n+OK\r\n"
	if got := c.send(call + call + "GET a\r\n"); got != begun+announced("a", "b")+begun+announced("a", "b")+"_\r\n" {
		t.Errorf("%q", got)
	}
	got := c.send("MULTI\r\nGET a\r\nCLIENT CACHING YES\r\nGET b\r\nEXEC\r\nGET c\r\n")
	if !strings.HasSuffix(got, "*3\r\n_\r\n+OK\r\n_\r\n"+announced("b")+"$1\r\n5\r\n") {
		t.Errorf("CACHING inside: %q", got)
	}
	c.do("WATCH", "c")
	w.connect().do("SET", "c", "6")
	if got := c.send("CLIENT CACHING YES\r\nMULTI\r\nGET c\r\nEXEC\r\nGET c\r\n"); !strings.HasSuffix(got, "+QUEUED\r\n_\r\n$1\r\n6\r\n") {
		t.Errorf("refused: %q", got)
	}
}

// CLIENT CACHING counts for one command. CL.THROTTLE and CL.TAKE are such commands on their short way, too.
func TestTrackingAndTheShortWay(t *testing.T) {
	w := newWorld(t)
	c := track(w, "OPTIN")
	for _, command := range []string{"CL.THROTTLE k 15 30 60 0", "CL.TAKE t 5/1h COST 0"} {
		reply := c.do(strings.Fields(command)...)
		c.want(command, reply) // its form is known from here on
		got := c.send(sessiontest.Frame("CLIENT", "CACHING", "YES") + sessiontest.Frame(strings.Fields(command)...) +
			sessiontest.Frame("GET", "a"))
		if got != "+OK\r\n"+reply+"_\r\n" {
			t.Errorf("%s: %q", command, got)
		}
	}
	c.want("CLIENT CACHING YES", "+OK\r\n")
	c.want("GET a", "_\r\n"+announced("a"))
}

func TestTrackingIsShown(t *testing.T) {
	w := newWorld(t)
	c, other := w.connect(), w.connect()
	for _, step := range []struct{ command, flags, redir, clients string }{
		{"PING", "N", "-1", "0"}, {"CLIENT TRACKING ON OPTIN", "t", "0", "1"}, {"MULTI", "xt", "0", "1"}, {"RESET", "N", "-1", "0"},
		{"CLIENT TRACKING ON", "t", "0", "1"},
	} {
		c.do(strings.Fields(step.command)...)
		line, _, _ := strings.Cut(other.do("CLIENT", "LIST"), "\n")
		line += other.do("CLIENT", "LIST", "ID", fmt.Sprint(c.client.ID))
		for _, field := range []string{" flags=" + step.flags + " ", " redir=" + step.redir + " "} {
			if !strings.Contains(line, field) {
				t.Errorf("%s: no %q in %s", step.command, field, line)
			}
		}
		if info := other.do("INFO", "clients"); !strings.Contains(info, "tracking_clients:"+step.clients+"\r\n") {
			t.Errorf("%s: %s", step.command, info)
		}
	}
	c.Closed()
	if info := other.do("INFO", "clients"); !strings.Contains(info, "tracking_clients:0\r\n") {
		t.Errorf("after the end: %s", info)
	}
}
