package session

import (
	"strings"
	"sync"
	"testing"

	"celld/resp/command/connection"
	"celld/resp/command/decide"
)

// An empty argument is one that was given, also when it has waited for EXEC.
func TestQueuedEmptyArgument(t *testing.T) {
	c := newWorld(t).connect()
	c.want("SET k 1800000000000000000", "+OK\r\n")
	c.want("MULTI", "+OK\r\n")
	c.do("SCAN", "0", "MATCH", "")
	c.want("EXEC", "*1\r\n*2\r\n$1\r\n0\r\n*0\r\n")
}

func TestExec(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	c.want("MULTI", "+OK\r\n")
	c.want("SET k 1800000000000000000", "+QUEUED\r\n")
	c.want("GET k", "+QUEUED\r\n")
	c.want("CL.THROTTLE other 0 1 1", "+QUEUED\r\n")
	c.want("CL.THROTTLE other x 1 1", "+QUEUED\r\n")
	c.want("EXEC", "*4\r\n+OK\r\n$19\r\n1800000000000000000\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n-"+decide.ErrThrottleParse+"x\r\n")
	c.want("EXEC", "-"+errExecNoMulti+"\r\n")
}

func TestExecAbort(t *testing.T) {
	c := newWorld(t).connect()
	for _, bad := range []string{"NOSUCH", "GET", "SAVE"} {
		c.want("MULTI", "+OK\r\n")
		if got := c.do(bad); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%s: %q", bad, got)
		}
		c.want("EXEC", "-"+errExecAbort+"\r\n")
	}
	c.want("MULTI", "+OK\r\n")
	c.want("MULTI", "-"+errNested+"\r\n")
	c.want("WATCH k", "-"+errWatchInMulti+"\r\n")
	c.want("EXEC", "*0\r\n")
	c.want("MULTI", "+OK\r\n")
	c.want("MONITOR", "+QUEUED\r\n")
	c.want("EXEC", "*1\r\n-"+connection.ErrMonitorInExec+"\r\n")
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	a, b := w.connect(), w.connect()
	a.want("SET k 5", "+OK\r\n")
	for name, change := range map[string]string{
		"set": "SET k 6", "delete": "DEL k", "throttle": "CL.THROTTLE k 1 1 60", "flush": "FLUSHALL", "touch only": "GET k",
	} {
		b.want("SET k 5", "+OK\r\n")
		a.want("WATCH k", "+OK\r\n")
		b.do(strings.Fields(change)...)
		a.want("MULTI", "+OK\r\n")
		a.want("PING", "+QUEUED\r\n")
		want := "*-1\r\n"
		if name == "touch only" {
			want = "*1\r\n+PONG\r\n"
		}
		a.want("EXEC", want)
	}
}

func TestUnwatchAndDiscardForget(t *testing.T) {
	w := newWorld(t)
	a, b := w.connect(), w.connect()
	a.want("WATCH k", "+OK\r\n")
	b.want("SET k 5", "+OK\r\n")
	a.want("UNWATCH", "+OK\r\n")
	a.want("MULTI", "+OK\r\n")
	a.want("EXEC", "*0\r\n")
	a.want("WATCH k", "+OK\r\n")
	a.want("MULTI", "+OK\r\n")
	a.want("DISCARD", "+OK\r\n")
	b.want("SET k 6", "+OK\r\n")
	a.want("MULTI", "+OK\r\n")
	a.want("EXEC", "*0\r\n")
}

// A transaction that takes a key's state, passes time and puts another one back is never seen half done.
func TestExecRunsAlone(t *testing.T) {
	w := newWorld(t)
	w.connect().want("SET k 1", "+OK\r\n")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			c := w.connect()
			for range 500 {
				if got := c.send("MULTI\r\nSET k 2\r\nSET k 1\r\nEXEC\r\n"); !strings.HasSuffix(got, "*2\r\n+OK\r\n+OK\r\n") {
					t.Errorf("transaction: %q", got)
				}
			}
		})
		wg.Go(func() {
			c := w.connect()
			for range 500 {
				if got := c.do("GET", "k"); got != "$1\r\n1\r\n" {
					t.Errorf("seen inside a transaction: %q", got)
				}
			}
		})
	}
	wg.Wait()
}
