package transport

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// waiting answers each line when another goroutine has finished it; "now" is answered at once.
func waiting(finish func(s *fakeSession)) func(s *fakeSession, line string) bool {
	return func(s *fakeSession, line string) bool {
		if line == "now" {
			return false
		}
		s.wait(strings.HasPrefix(line, "leave"), line+"\n")
		finish(s)
		return true
	}
}

// A pipeline of commands that each wait is answered in its order, whoever wakes its session and however often. Of what waits, no
// more than a read is held.
func TestAPipelineThatPauses(t *testing.T) {
	t.Parallel()
	const conns, commands, width = 3, 2000, 120 // of each 240 KB
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			begun := make(chan *fakeSession, conns)
			eachCarrier(t, func(c *carried) {
				c.Sync = sync
				c.handle = waiting(func(s *fakeSession) { begun <- s })
			}, func(t *testing.T, c *carried) { pipelines(t, c, begun, conns, commands, width) })
		})
	}
}

func pipelines(t *testing.T, c *carried, begun chan *fakeSession, conns, commands, width int) {
	stop := make(chan struct{})
	var finishing, asking sync.WaitGroup
	for worker := range 4 {
		finishing.Go(func() {
			for n := 0; ; n++ {
				select {
				case s := <-begun:
					if (n+worker)%3 == 0 { // for nothing
						s.conn.Wake()
					}
					s.finish()
				case <-stop:
					return
				}
			}
		})
	}
	for conn := range conns {
		p := c.dial(t)
		var raw strings.Builder
		for i := range commands {
			fmt.Fprintf(&raw, "%s%*d\n", [2]string{"stay", "leave"}[i%2], width-5, conn*commands+i)
			if i%7 == 0 {
				raw.WriteString("now\n")
			}
		}
		asking.Go(func() { _, _ = p.Conn.Write([]byte(raw.String())) })
		asking.Go(func() {
			for want := range strings.SplitAfterSeq(raw.String(), "\n") {
				if want == "" {
					return
				}
				if got, err := p.ReadString('\n'); got != want {
					t.Errorf("%q, %v; want %q", got, err, want)
					p.Close()
					return
				}
			}
		})
	}
	asking.Wait()
	close(stop)
	finishing.Wait()
	for _, s := range c.all() {
		s.conn.Close(true)
	}
	eventually(t, "end of all", func() bool { return len(c.all()) == 0 })
	for _, s := range c.sessions {
		if s.held > 64<<10+18<<10+width { // with TLS, a record that came in part before is added
			t.Errorf("%d bytes were held", s.held)
		}
	}
}

// paused runs a test on a connection that has sent raw, and waits.
func paused(t *testing.T, raw string, test func(t *testing.T, c *carried, p peer, s *fakeSession)) {
	eachCarrier(t, func(c *carried) { c.handle = waiting(func(*fakeSession) {}) }, func(t *testing.T, c *carried) {
		p := c.dial(t)
		p.ask("now\n", "now\n")
		p.send("now\n" + raw)
		p.want("now\n") // which leaves before the pause is over
		test(t, c, p, c.all()[0])
	})
}

// A wake counts that came before Pause, in the same Serve.
func TestAWakeBeforeThePause(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.handle = func(s *fakeSession, line string) bool {
			s.conn.Wake()
			s.wait(false, line+"\n")
			s.finished.Store(true)
			return true
		}
	}, func(t *testing.T, c *carried) {
		p := c.dial(t)
		for range 100 {
			p.ask("a\nb\n", "a\nb\n")
		}
	})
}

// A peer that goes away while its session is paused is noticed, also behind what has not been read.
func TestThePeerOfAPausedSessionGoes(t *testing.T) {
	reset := func(p peer) {
		_ = p.socket().SetLinger(0)
		p.Close()
	}
	behind := strings.Repeat("now\n", 10_000) // 40 KB, which fit into the socket
	for name, test := range map[string]struct {
		raw   string
		leave func(p peer)
	}{
		"closes":           {"leave\n", func(p peer) { p.Close() }},
		"closes its half":  {"leave\n", peer.closeWrite},
		"resets":           {"leave\n", reset},
		"resets, kept":     {"stay\n", reset},
		"closes behind":    {"leave\n", func(p peer) { p.send(behind); p.Close() }},
		"resets behind":    {"stay\n", func(p peer) { p.send(behind); reset(p) }},
		"closed its half":  {"", func(p peer) { p.send("leave\n"); p.closeWrite() }},
		"closed in one go": {"", func(p peer) { p.send("leave\nnow\n"); p.Close() }},
		"says farewell":    {"leave\n", peer.farewell},
		"farewell behind":  {"leave\n", func(p peer) { p.send(behind[:mostBehind-1]); p.farewell() }},
		"farewell in one":  {"", func(p peer) { p.send("leave\nnow\n"); p.farewell() }},
	} {
		t.Run(name, func(t *testing.T) {
			paused(t, test.raw, func(t *testing.T, c *carried, p peer, s *fakeSession) {
				test.leave(p)
				eventually(t, "end", func() bool { return s.closed.Load() == 1 })
			})
		})
	}
}

// linger is a socket that tells when its half is closed, after which the peer's end is waited for.
type linger struct {
	*net.TCPConn
	began *atomic.Bool
}

func (l linger) CloseWrite() error {
	l.began.Store(true)
	return l.TCPConn.CloseWrite()
}

// The end of a connection that waits is not put off until its peer has ended, too: its session may be granted meanwhile what it has waited
// for.
func TestAPausedSessionEndsAtOnce(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.handle = waiting(func(*fakeSession) {})
		c.listener = wrapping(func(conn net.Conn) net.Conn { return linger{conn.(*net.TCPConn), &c.lingers} })
	}, func(t *testing.T, c *carried) {
		p := c.dial(t)
		p.send("now\nleave\n")
		p.want("now\n")
		p.farewell()
		eventually(t, "end", func() bool { return c.left.Load() == 1 })
		if c.lingers.Load() {
			t.Error("it waits for the peer's end")
		}
	})
}

// Input that comes while a session waits is served when it goes on, in its order and whole, however much it is. Then the end is met.
func TestWhatComesBehindAWait(t *testing.T) {
	for name, lines := range map[string]int{"little": 10, "as much as is read": mostBehind / 4, "more": 100_000} {
		t.Run(name, func(t *testing.T) {
			paused(t, "leave\n", func(t *testing.T, c *carried, p peer, s *fakeSession) {
				behind := strings.Repeat("now\n", lines-1) + "end\n"
				var sending sync.WaitGroup
				sending.Go(func() { p.send(behind) })
				if lines <= mostBehind/4 {
					sending.Wait()
				}
				if c.tls != nil && c.byLoops() {
					c.Settle(t.Context()) // in which the loop reads it
				}
				s.finish()
				p.want("leave\n")
				p.want(strings.Repeat("now\n", lines-1))
				eventually(t, "second wait", func() bool { return !s.finished.Load() })
				s.finish()
				p.want("end\n")
				sending.Wait()
				p.ask("now\n", "now\n")
				p.closeWrite()
				p.wantClosed()
			})
		})
	}
}

// One that has closed its half is answered where its session says so, all that it has sent before.
func TestAPausedSessionStays(t *testing.T) {
	paused(t, "stay\nnow\nstay\n", func(t *testing.T, c *carried, p peer, s *fakeSession) {
		p.closeWrite()
		c.Settle(t.Context()) // in which it would end
		s.finish()
		p.want("stay\nnow\n")
		eventually(t, "second wait", func() bool { return !s.finished.Load() })
		s.finish()
		p.want("stay\n")
		p.wantClosed()
	})
}

// A paused connection can be closed by others, and is owed its reply.
func TestOthersAndAPausedSession(t *testing.T) {
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprintf("now=%v", now), func(t *testing.T) {
			paused(t, "stay\nnow\n", func(t *testing.T, c *carried, p peer, s *fakeSession) {
				for range 5 {
					if !c.Owes(time.Minute) {
						t.Fatal("nothing is owed")
					}
				}
				s.conn.Close(now)
				p.wantClosed()
			})
		})
	}
	paused(t, "stay\nnow\n", func(t *testing.T, c *carried, p peer, s *fakeSession) {
		c.Owes(time.Minute)
		s.finish()
		p.want("stay\nnow\n")
		eventually(t, "end of what is owed", func() bool { return !c.Owes(time.Minute) })
	})
}

// A paused session without a socket cannot be told that its peer has gone, and ends.
func TestAPausedSessionWithoutASocket(t *testing.T) {
	c := &carried{}
	c.handle = waiting(func(*fakeSession) {})
	c.listener = wrapping(func(conn net.Conn) net.Conn { return struct{ net.Conn }{conn} })
	c.start(t)
	p := dial(t, c.listen(t, "tcp"))
	p.send("now\nstay\nnow\n")
	p.want("now\n")
	p.wantClosed()
}
