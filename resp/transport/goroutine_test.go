package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// The last message to a connection does not wait for a peer that reads nothing: not the refusal of one that is not served, not
// its last replies, and nothing at all where it is closed at once.
func TestAGoroutineAndADeafPeer(t *testing.T) {
	for name, test := range map[string]struct {
		send string
		now  bool
		ends time.Duration
	}{
		"refused":        {ends: 100 * time.Millisecond},
		"a last command": {send: "a\nlast\n", ends: lingerNS + 2*writeTurn},
		"closed at once": {send: "a\n", now: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &carried{}
				c.handle = ends
				if test.send == "" {
					c.places = 1
					c.left.Store(-1) // so there is none
				}
				c.start(t)
				ours, theirs := net.Pipe()
				begin := time.Now()
				c.carry(context.Background(), ours)
				if test.send != "" {
					if _, err := theirs.Write([]byte(test.send)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if test.now {
					c.sessions[0].conn.Close(true)
				}
				c.carrier.(*goroutineCarrier).running.Wait()
				if took := time.Since(begin); took != test.ends {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// An acceptor gives goroutines a moment to notice ends, if there are any.
func TestGoroutinesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carried{}
		c.start(t)
		for _, want := range []time.Duration{0, time.Millisecond} {
			begin := time.Now()
			c.carrier.settle(t.Context())
			if took := time.Since(begin); took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
			ours, _ := net.Pipe()
			c.carry(t.Context(), ours)
		}
	})
}

// Input that has arrived is owed an answer also while its goroutine does not run, and what comes after much of it is not.
func TestAGoroutineThatDoesNotRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	g := &goroutineCarrier{}
	c := &goroutineConn{carrier: g, socket: ours}
	g.conns = map[any]func(){c: func() {}}
	if _, err := theirs.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if !g.owes(0) {
			t.Fatal("it is not owed")
		}
	}
	c.heard.Store(onItsWay)
	if g.owes(0); g.owes(0) {
		t.Error("what comes later is owed, too")
	}
	c.heard.Store(0)
	if !g.owes(0) {
		t.Error("it is not owed any more")
	}
	if _, err := ours.Read(make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	if g.owes(0); g.owes(0) {
		t.Error("what was read is owed")
	}
}
