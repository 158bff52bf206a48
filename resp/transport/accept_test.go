package transport

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// fewDescriptors is a listener that fails some times before each connection.
type fewDescriptors struct {
	conns chan net.Conn
	fails int
}

func (l *fewDescriptors) Accept() (net.Conn, error) {
	if l.fails > 0 {
		l.fails--
		return nil, errors.New("too many open files")
	}
	conn, open := <-l.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (*fewDescriptors) Close() error   { return nil }
func (*fewDescriptors) Addr() net.Addr { return nil }

// An acceptor that is out of descriptors says so and goes on, without turning in a circle.
func TestAcceptTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &carried{}
		c.start(t)
		ln := &fewDescriptors{conns: make(chan net.Conn), fails: 3}
		begin := time.Now()
		go c.Accept(context.Background(), Listener{Listener: ln})
		ours, theirs := net.Pipe()
		ln.conns <- ours
		if took := time.Since(begin); took != 150*time.Millisecond || c.warnings.Load() != 3 {
			t.Errorf("%d warnings in %v", c.warnings.Load(), took)
		}
		newPeer(t, theirs).ask("a\n", "a\n")
		close(ln.conns)
		theirs.Close()
	})
}

// What waits in the queue of a listener when the server stops is accepted and answered.
func TestStoppingTakesTheQueue(t *testing.T) {
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		c := &carried{}
		c.start(t)
		ln, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		var peers []peer
		for range 3 {
			conn, err := net.Dial(network, ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			peers = append(peers, newPeer(t, conn))
			peers[len(peers)-1].send("a\n")
		}
		StopAccepting(ln)
		c.Accept(t.Context(), Listener{Listener: ln})
		ln.Close()
		for _, p := range peers {
			p.want("a\n")
		}
	}
}

// settling is a carrier that finds out who has gone when it is asked to.
type settling struct {
	carrier
	asked int
	found func()
}

func (s *settling) settle(context.Context) { s.asked++; s.found() }
func (s *settling) stop()                  {}

// A full server looks who has gone before it refuses a connection, but not again for a moment if nobody had.
func TestAFullServerLooksWhoHasGone(t *testing.T) {
	c := &carried{}
	c.places = 1
	c.still.Store(true)
	c.start(t)
	loops := &settling{found: func() {}}
	c.carrier = loops
	leave := func() { c.left.Add(1) }
	for _, step := range []struct {
		name   string
		after  time.Duration
		found  func()
		served bool
		looks  int
	}{
		{"the first", 0, func() {}, true, 0},
		{"somebody has gone", 0, leave, true, 1},
		{"at once again, as that helped", 0, leave, true, 2},
		{"nobody has gone", 0, func() {}, false, 3},
		{"soon after", fullNS - 1, leave, false, 3},
		{"later", 1, leave, true, 4},
	} {
		c.skew(step.after)
		loops.found = step.found
		ours, theirs := net.Pipe()
		defer ours.Close()
		refused := make(chan bool)
		go func() {
			_, err := theirs.Read(make([]byte, 9))
			refused <- err == nil
		}()
		session, refusal, _ := c.admit(context.Background(), ours)
		served := session != nil
		if !served {
			refuse(ours, refusal)
		}
		ours.Close()
		if <-refused == served || served != step.served || loops.asked != step.looks {
			t.Errorf("%s: served %v, %d looks; want %v and %d", step.name, served, loops.asked, step.served, step.looks)
		}
	}
	c.sessions = nil // they were never opened
	if n := c.rejected.Load(); n != 2 {
		t.Errorf("%d were counted as rejected", n)
	}
}
