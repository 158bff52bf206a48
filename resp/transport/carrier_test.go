package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	eachCarrier(t, nil, func(t *testing.T, c *carried) {
		p := c.dial(t)
		p.ask("a\n", "a\n")
		p.ask(strings.Repeat("b\n", 20_000), strings.Repeat("b\n", 20_000))
		long := strings.Repeat("x", 200_000) + "\n"
		var sending sync.WaitGroup
		sending.Go(func() { _, _ = p.Conn.Write([]byte(long)) })
		p.want(long)
		sending.Wait()
	})
}

func TestManyConnections(t *testing.T) {
	t.Parallel()
	eachCarrier(t, nil, func(t *testing.T, c *carried) {
		var peers []peer
		for range 100 {
			p := c.dial(t)
			p.ask("a\n", "a\n") // by TLS each handshake has 10 s
			peers = append(peers, p)
		}
		for round := range 3 {
			for i, p := range peers {
				line := fmt.Sprintf("%d %d\n", round, i)
				p.ask(line, line)
			}
		}
	})
}

// A session hears how much of what it sends has not left.
func TestSendSaysWhatHasNotLeft(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.handle = func(s *fakeSession, line string) bool {
			s.reply(line + "\n")
			s.reply(fmt.Sprintln(s.flush()))
			return true
		}
	}, func(t *testing.T, c *carried) { c.dial(t).ask("a\nab\n", "a\n2\nab\n7\n") })
}

// Work in the background is done step by step to its end, with and without loops.
func TestBackground(t *testing.T) {
	for _, loops := range []int{0, 2} {
		c := &carried{Options: Options{Loops: loops}}
		c.start(t)
		var steps atomic.Int64
		c.Background(func() (more bool) { return steps.Add(1) < 5 })
		eventually(t, "end of the work", func() bool { return steps.Load() == 5 })
		dial(t, c.listen(t, "tcp")).ask("a\n", "a\n")
		if n := steps.Load(); n != 5 {
			t.Errorf("%d loops: %d steps of 5", loops, n)
		}
	}
}

// Connections of all listeners of a server reach each other.
func TestConnectionsReachEachOther(t *testing.T) {
	for _, loops := range []int{0, 2} {
		connectionsReachEachOther(t, &carried{Options: Options{Loops: loops}})
	}
}

func connectionsReachEachOther(t *testing.T, c *carried) {
	c.handle = func(s *fakeSession, line string) bool {
		switch line {
		case "carrier":
			s.reply(fmt.Sprintf("%T\n", s.conn))
		case "wake":
			for _, other := range c.all() {
				if other != s {
					other.conn.Wake()
				}
			}
			s.reply("woken\n")
		default:
			return false
		}
		return true
	}
	c.onWake = func(s *fakeSession) { s.reply("awake\n") }
	c.start(t)
	ends := map[string]peer{}
	want := "*transport.goroutineConn\n"
	if c.byLoops() && HasLoops {
		want = "*transport.epollConn\n"
	}
	for _, name := range []string{"tcp", "unix"} {
		ends[name] = dial(t, c.listen(t, name))
		ends[name].ask("carrier\n", want)
	}
	for name := range ends {
		ends[name].ask("wake\n", "woken\n")
		for other := range ends {
			if other != name {
				ends[other].want("awake\n")
			}
		}
	}
	if !c.byLoops() && !c.Owes(time.Second) { // a goroutine's connection is looked at twice
		t.Error("nothing is owed at the first look")
	}
	eventually(t, "end of what is owed", func() bool { return !c.Owes(time.Second) })
}

type wrapped struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrapped) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		conn = l.wrap(conn)
	}
	return conn, err
}

func wrapping(wrap func(net.Conn) net.Conn) func(net.Listener) net.Listener {
	return func(ln net.Listener) net.Listener { return wrapped{ln, wrap} }
}

// strangeConn panics when the server asks who it is.
type strangeConn struct{ *net.TCPConn }

func (strangeConn) RemoteAddr() net.Addr { panic("who, me?") }

func TestAPanicInAccept(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		n := 0
		c.listener = wrapping(func(conn net.Conn) net.Conn {
			if n++; n%2 == 1 {
				return strangeConn{conn.(*net.TCPConn)}
			}
			return conn
		})
	}, func(t *testing.T, c *carried) {
		for range 3 {
			c.dial(t).wantClosed()
			c.dial(t).ask("a\n", "a\n")
		}
		if n := c.panics.Load(); n != 3 {
			t.Errorf("%d panics", n)
		}
	})
}

// A session that panics when it is opened is closed.
func TestAPanicInOpen(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		var opened atomic.Int64
		c.onOpen = func() {
			if opened.Add(1) == 1 {
				panic("not today")
			}
		}
	}, func(t *testing.T, c *carried) {
		p := c.dial(t)
		_, _ = io.WriteString(p.Conn, "a\n") // so that a handshake begins
		p.wantClosed()
		c.dial(t).ask("a\n", "a\n")
		if n := c.panics.Load(); n != 1 {
			t.Errorf("%d panics", n)
		}
	})
}

// A panic in a session costs its connection, and the round that it was in ends.
func TestAPanicInAConnection(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.Sync = true
		c.handle = func(_ *fakeSession, line string) bool {
			if line == "boom" {
				panic("at the disco")
			}
			return false
		}
	}, func(t *testing.T, c *carried) {
		p := c.dial(t)
		for round := range int64(3) {
			broken := c.dial(t)
			broken.send("boom\n")
			broken.wantClosed()
			p.ask("a\n", "a\n")
			eventually(t, "end of the broken one", func() bool { return c.left.Load() == round+1 })
		}
		eventually(t, "end of what is owed", func() bool { return !c.Owes(time.Minute) })
		if n := c.panics.Load(); n != 3 {
			t.Errorf("%d panics", n)
		}
	})
}

// takenConn tells when its descriptor is taken over.
type takenConn struct {
	*net.TCPConn
	taken func() error
}

func (c takenConn) SyscallConn() (syscall.RawConn, error) {
	if err := c.taken(); err != nil {
		return nil, err
	}
	return c.TCPConn.SyscallConn()
}

// A connection that cannot be taken over gives its place back.
func TestConnectionsThatCannotBeTakenOver(t *testing.T) {
	for name, test := range map[string]struct {
		taken  func(conn *net.TCPConn) error
		panics int64
	}{
		"a panic":   {func(*net.TCPConn) error { panic("no descriptor") }, 3},
		"an error":  {func(*net.TCPConn) error { return errors.New("no descriptor") }, 0},
		"a failure": {func(conn *net.TCPConn) error { return conn.Close() }, 0}, // to get another descriptor
	} {
		t.Run(name, func(t *testing.T) {
			eachCarrier(t, func(c *carried) {
				n := 0
				c.places = 1
				c.listener = wrapping(func(conn net.Conn) net.Conn {
					if n++; n <= 3 {
						return takenConn{conn.(*net.TCPConn), func() error { return test.taken(conn.(*net.TCPConn)) }}
					}
					return conn
				})
			}, func(t *testing.T, c *carried) {
				if !c.byLoops() {
					return // which ask for no descriptor
				}
				for range 3 {
					c.dial(t).wantClosed()
				}
				c.dial(t).ask("a\n", "a\n")
				if n := c.panics.Load(); n != test.panics {
					t.Errorf("%d panics", n)
				}
				if rejected, warnings := c.rejected.Load(), c.warnings.Load(); rejected != 3-test.panics || warnings != rejected {
					t.Errorf("%d were rejected with %d warnings", rejected, warnings)
				}
			})
		})
	}
}

// A connection that is not whole yet is seen by nobody.
func TestWholeConnectionsAreOpened(t *testing.T) {
	eachCarrier(t, func(c *carried) {
		c.listener = wrapping(func(conn net.Conn) net.Conn {
			return takenConn{conn.(*net.TCPConn), func() error {
				for _, s := range c.all() {
					s.conn.Close(true)
				}
				return nil
			}}
		})
		c.handle = func(s *fakeSession, _ string) bool { s.ending = true; return false }
	}, func(t *testing.T, c *carried) {
		for range 20 {
			p := c.dial(t)
			p.ask("last\n", "last\n")
			p.wantClosed()
		}
	})
}

// Connections that came and went while a loop was busy take no place from one that stays.
func TestRefusedForTheLivingOnly(t *testing.T) {
	const places = 5
	entered, release, accepted := make(chan bool), make(chan bool), make(chan bool, 2*places)
	eachCarrier(t, func(c *carried) {
		c.Loops, c.places = 1, places
		c.handle = func(s *fakeSession, line string) bool {
			if line == "busy" {
				entered <- true
				<-release
			}
			return false
		}
		if c.byLoops() {
			c.listener = wrapping(func(conn net.Conn) net.Conn { accepted <- true; return conn })
		}
	}, func(t *testing.T, c *carried) {
		if !c.byLoops() {
			return // goroutines meet the end of their connections when they come to run
		}
		busy := c.dial(t)
		busy.send("busy\n")
		<-entered
		for range places - 1 {
			went := c.dial(t)
			went.send("a\n")
			went.Close()
		}
		stays := c.dial(t)
		for range places + 1 {
			<-accepted
		}
		time.Sleep(10 * time.Millisecond) // in which it would be refused
		release <- true
		stays.ask("a\n", "a\n")
		busy.want("busy\n")
		if n := c.rejected.Load(); n != 0 {
			t.Errorf("%d connections were refused", n)
		}
	})
}

// One connection too many is told so, and counted; when another has gone, the next is served.
func TestTooManyConnections(t *testing.T) {
	eachCarrier(t, func(c *carried) { c.places = 2 }, func(t *testing.T, c *carried) {
		first, second := c.dial(t), c.dial(t)
		first.ask("a\n", "a\n")
		second.ask("a\n", "a\n")
		third := c.dial(t)
		if c.tls == nil {
			third.want("full\n")
		}
		third.wantClosed()
		if n := c.rejected.Load(); n != 1 {
			t.Errorf("%d were counted", n)
		}
		first.Close()
		eventually(t, "end of the first", func() bool { return c.left.Load() == 1 })
		c.dial(t).ask("a\n", "a\n")
	})
}

// A peer that takes nothing does not keep the acceptor when it is refused.
func TestARefusedPeerThatTakesNothing(t *testing.T) {
	near, far := net.Pipe() // which holds nothing
	defer far.Close()
	refused := make(chan bool)
	go func() { refuse(near, "full\n"); close(refused) }()
	select {
	case <-refused:
	case <-time.After(patience):
		t.Error("it is kept")
	}
}

// Connections may be closed by others at any moment of their coming.
func TestClosedWhileConnectionsArrive(t *testing.T) {
	t.Parallel()
	eachCarrier(t, nil, func(t *testing.T, c *carried) {
		var arriving sync.WaitGroup
		var left atomic.Int64
		for range 4 {
			left.Add(1)
			arriving.Go(func() {
				defer left.Add(-1)
				for range 60 {
					conn, err := net.Dial(c.addr.Network(), c.addr.String())
					if err != nil {
						t.Error(err)
						return
					}
					if c.tls != nil {
						conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
					}
					_, _ = conn.Write([]byte("a\n"))
					_, _ = conn.Read(make([]byte, 16)) // its line, or its end
					conn.Close()
				}
			})
		}
		for n := 0; left.Load() > 0; n++ {
			time.Sleep(100 * time.Microsecond) // otherwise Go's poller seldom comes to run, and few arrive
			for _, s := range c.all() {
				s.conn.Close(n%2 == 0)
			}
		}
		arriving.Wait()
		eventually(t, "end of all", func() bool { return len(c.all()) == 0 })
	})
}
