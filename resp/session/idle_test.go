package session

import (
	"net"
	"strings"
	"testing"
	"time"

	"celld/resp/command"
	"celld/resp/session/sessiontest"
)

// look looks as the cron does, and serves the connection if that wakes it.
func (p *peer) look(w *world) {
	wakes := p.tr.Wakes
	w.WakeIdle()
	if p.tr.Wakes > wakes {
		p.Serve(nil)
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "timeout", "1")
	c := w.connect()
	c.want("PING", "+PONG\r\n")
	w.sleepMS(1000)
	if c.look(w); c.tr.Closed {
		t.Fatal("closed at the timeout, not after it")
	}
	w.sleepMS(1)
	if c.look(w); !c.tr.Closed || w.Stats.IdleCloses.Load() != 1 {
		t.Errorf("closed %v, counted %d", c.tr.Closed, w.Stats.IdleCloses.Load())
	}
}

// A connection is not idle while it is served, nor as long again after that.
func TestServedIsNotIdle(t *testing.T) {
	for name, raw := range map[string]string{
		"slices": strings.Repeat("SLOW\r\n", 1000), "one command": "SLOWER\r\n", "a transaction": "MULTI\r\nSLOWER\r\nEXEC\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "timeout", "1")
			c := w.connect()
			slow := func(ms int64) func(*Session, [][]byte) {
				return func(s *Session, _ [][]byte) { w.sleepMS(ms); w.WakeIdle(); s.call.OK() }
			}
			w.Commands.Add(&command.Row{Name: "slow", Arity: 1, Run: onSession(slow(4))})
			w.Commands.Add(&command.Row{Name: "slower", Arity: 1, Run: onSession(slow(3000))})
			for c.Serve([]byte(raw)); c.unserved; c.Serve(nil) {
				if c.look(w); c.tr.Closed {
					t.Fatal("closed while it is served")
				}
			}
			w.sleepMS(1000)
			if c.look(w); c.tr.Closed {
				t.Error("closed too soon")
			}
			w.sleepMS(10)
			if c.look(w); !c.tr.Closed {
				t.Error("not closed")
			}
		})
	}
}

// Nor is one that waits for its turn, behind a command of another connection.
func TestWaitingForATurnIsNotIdle(t *testing.T) {
	w := newWorld(t, "timeout", "1")
	w.Commands.Add(&command.Row{Name: "slow", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) { w.sleepMS(6); s.call.OK() })})
	c := w.connect()
	c.Serve([]byte("SLOW\r\nPING\r\n"))
	w.sleepMS(3000)
	if c.look(w); c.tr.Closed || c.tr.Take() != "+OK\r\n+PONG\r\n" {
		t.Error("not answered")
	}
}

// A peer that takes its replies slowly is not idle; one that takes none is.
func TestCarriersSlowReaderIsNotIdle(t *testing.T) {
	t.Parallel()
	o := carrierTest{rows: []*command.Row{bigRow}, settings: []string{"timeout", "3600", "client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10) // so that the kernel holds little
		c.Send("BIG\r\n")
		eventually(t, "wait for the peer", func() bool { return unsent(srv) > 0 })
		own := srv.Clients.All()[0]
		for range 10 {
			skew(srv, 40*time.Minute)
			nowNS := srv.Clock()
			c.Ask("", strings.Repeat(bigPart, 20))
			eventually(t, "progress", func() bool {
				own.Conn.Wake() // as the cron does
				return own.LastNS.Load() >= nowNS
			})
		}
		if n := srv.Stats.IdleCloses.Load(); n != 0 {
			t.Fatalf("%d closed", n)
		}
		eventually(t, "end", func() bool {
			skew(srv, time.Hour) // again, as it may have taken some since it was looked at
			return srv.Stats.IdleCloses.Load() == 1 && srv.Clients.Count() == 0
		})
	})
}
