package resp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"celld/resp/wire"
)

// slowRow is a command that takes a while.
var slowRow = &command{name: "slow", arity: 1, run: func(s *Session, _ [][]byte) { time.Sleep(6 * time.Millisecond); s.replyOK() }}

// bigRow is a command whose reply is more than sockets hold.
var bigRow = &command{name: "big", arity: 1, run: func(s *Session, _ [][]byte) { s.out = append(s.out, strings.Repeat(bigPart, bigParts)...) }}

// lastRow has the same reply, and is the last command of its connection.
var lastRow = &command{name: "last", arity: 1, run: func(s *Session, args [][]byte) { bigRow.run(s, args); s.end = afterReply }}

// A reply of bigRow is so many of these.
const bigParts = 270

var bigPart = "$60000\r\n" + strings.Repeat("x", 60_000) + "\r\n"

func closeWrite(c testConn) { _ = c.Conn.(*net.TCPConn).CloseWrite() }

// Connections may be killed at any moment of their coming.
func TestCarriersKillWhileConnectionsArrive(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		killer := dialTest(t, addr)
		var arriving sync.WaitGroup
		var left atomic.Int64
		for range 4 {
			left.Add(1)
			arriving.Go(func() {
				defer left.Add(-1)
				for range 300 {
					conn, err := net.Dial("tcp", addr)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.WriteString(conn, "PING\r\n")
					_, _ = conn.Read(make([]byte, 16)) // PONG, or its end
					conn.Close()
				}
			})
		}
		for left.Load() > 0 {
			killer.send("CLIENT KILL TYPE normal SKIPME yes\r\n")
			if line, err := killer.ReadString('\n'); err != nil || line[0] != ':' {
				t.Fatalf("%q, %v", line, err)
			}
		}
		arriving.Wait()
		eventually(t, "end of all but the killer", func() bool { return srv.clientCount() == 1 })
		killer.ask("PING\r\n", "+PONG\r\n")
	})
}

// killedConn is killed while its descriptor is taken over.
type killedConn struct {
	*net.TCPConn
	kill func()
}

func (c killedConn) SyscallConn() (syscall.RawConn, error) {
	c.kill()
	return c.TCPConn.SyscallConn()
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

// A connection that is not whole yet is seen by nobody.
func TestCarriersPublishWholeConnections(t *testing.T) {
	o := carrierTest{listener: func(srv *Server, ln net.Listener) net.Listener {
		kill := func() {
			for _, s := range srv.allSessions() {
				s.kill()
			}
		}
		return wrapped{ln, func(conn net.Conn) net.Conn { return killedConn{conn.(*net.TCPConn), kill} }}
	}}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		for range 20 {
			c := dialTest(t, addr)
			c.ask("QUIT\r\n", "+OK\r\n")
			c.wantClosed()
		}
		eventually(t, "end of all", func() bool { return srv.clientCount() == 0 })
	})
}

// stuckConn counts the writes that its peer did not let end in time.
type stuckConn struct {
	*net.TCPConn
	stuck *atomic.Int64
}

func (c stuckConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	if err != nil {
		c.stuck.Add(1)
	}
	return n, err
}

// The replies of a connection of any age leave before it closes, to a peer that reads late.
func TestCarriersLateReader(t *testing.T) {
	for name, end := range map[string]struct{ raw, reply string }{
		"QUIT":             {"BIG\r\nQUIT\r\n", "+OK\r\n"},
		"a last command":   {"LAST\r\n", ""},
		"a protocol error": {"BIG\r\n*1\r\n$-2\r\n", "-" + string(wire.ErrBulkLen) + "\r\n"},
		"half a close":     {"BIG\r\nPING\r\n", "+PONG\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stuck atomic.Int64
			o := carrierTest{rows: []*command{bigRow, lastRow}, settings: []string{"client-output-buffer-limit", "64mb"}}
			o.listener = func(_ *Server, ln net.Listener) net.Listener {
				return wrapped{ln, func(conn net.Conn) net.Conn { return stuckConn{conn.(*net.TCPConn), &stuck} }}
			}
			o.run(t, func(t *testing.T, srv *Server, addr string) {
				c := dialTest(t, addr)
				c.ask("PING\r\n", "+PONG\r\n")
				skew(srv, time.Hour)
				c.send(end.raw)
				eventually(t, "wait for the peer", func() bool { return unsent(srv) > 0 })
				closeWrite(c)
				if strings.HasSuffix(t.Name(), "goroutines") {
					eventually(t, "several tries to write", func() bool { return stuck.Load() > 3 })
				}
				c.ask("", strings.Repeat(bigPart, bigParts)+end.reply)
				c.wantClosed()
			})
		})
	}
}

func unsent(srv *Server) (bytes int64) {
	for _, s := range srv.allSessions() {
		bytes += s.client.unsent.Load()
	}
	return bytes
}

// A connection that ends and whose peer reads nothing of what it was sent is closed after a while.
func TestCarriersNobodyReadsTheEnd(t *testing.T) {
	o := carrierTest{rows: []*command{lastRow}, settings: []string{"client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		c := dialTest(t, addr)
		c.send("LAST\r\n")
		eventually(t, "wait for the peer", func() bool { return unsent(srv) > 0 })
		eventually(t, "end", func() bool {
			skew(srv, time.Second)
			return srv.clientCount() == 0
		})
	})
}

// What arrives before the peer closes its half is answered, however long that takes.
func TestCarriersAnswerBeforeTheEnd(t *testing.T) {
	for name, test := range map[string]struct{ send, want string }{
		"commands":              {strings.Repeat("SLOW\r\n", 20) + "PING\r\n", strings.Repeat("+OK\r\n", 20) + "+PONG\r\n"},
		"a transaction":         {"MULTI\r\n" + strings.Repeat("SLOW\r\n", 5) + "EXEC\r\nSLOW\r\nPING\r\n", "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 5) + "*5\r\n" + strings.Repeat("+OK\r\n", 6) + "+PONG\r\n"},
		"a transaction's start": {"SLOW\r\nMULTI\r\nSLOW\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n"},
		"half a command":        {"SLOW\r\nSLOW\r\nPING\r\n*1\r\n$4\r\nPI", "+OK\r\n+OK\r\n+PONG\r\n"},
		"more than one read": {strings.Repeat("SLOW\r\n"+frame("ECHO", strings.Repeat("y", 20_000)), 20),
			strings.Repeat("+OK\r\n$20000\r\n"+strings.Repeat("y", 20_000)+"\r\n", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			carrierTest{rows: []*command{slowRow}}.run(t, func(t *testing.T, srv *Server, addr string) {
				c := dialTest(t, addr)
				c.ask("PING\r\n", "+PONG\r\n")
				c.send(test.send)
				closeWrite(c)
				c.ask("", test.want)
				c.wantClosed()
			})
		})
	}
}

// Where replies wait for the disk they do so then, too.
func TestTheEndWaitsForTheDisk(t *testing.T) {
	disk := &fullDisk{}
	carrierTest{files: disk, rows: []*command{slowRow}}.run(t, func(t *testing.T, srv *Server, addr string) {
		c := dialTest(t, addr)
		c.ask("PING\r\n", "+PONG\r\n")
		gate := make(chan error)
		disk.gate.Store(&gate)
		syncs := disk.syncs.Load()
		c.send(fmt.Sprintf(waitingCall, t.Name()) + "SLOW\r\nSLOW\r\nPING\r\n")
		closeWrite(c)
		eventually(t, "a write", func() bool { return disk.syncs.Load() > syncs })
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if got, err := c.Peek(1); err == nil {
			t.Errorf("%q was answered before it was written", got)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		close(gate)
		disk.gate.Store(nil)
		c.ask("", waitingPass+"+OK\r\n+OK\r\n+PONG\r\n")
		c.wantClosed()
	})
}

// A server that is told to stop answers what has arrived, in slices, behind a full buffer, or on many connections.
func TestCarriersStopAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		conns      int
		send, want string
	}{
		"slow commands":      {1, strings.Repeat("SLOW\r\n", 250), strings.Repeat("+OK\r\n", 250)}, // for longer than busyNS
		"one slow command":   {1, "SLEEPY\r\nPING\r\n", "+OK\r\n+PONG\r\n"},
		"more than one read": {1, strings.Repeat("SLOW\r\n"+frame("ECHO", strings.Repeat("y", 10_000)), 250), strings.Repeat("+OK\r\n$10000\r\n"+strings.Repeat("y", 10_000)+"\r\n", 250)},
		"many connections":   {500, "SLOW\r\n", "+OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sleepy := &command{name: "sleepy", arity: 1, run: func(s *Session, _ [][]byte) { time.Sleep(200 * time.Millisecond); s.replyOK() }}
			o := carrierTest{rows: []*command{slowRow, sleepy}, settings: []string{"client-output-buffer-limit", "64mb", "shutdown-timeout", "60"}}
			o.run(t, func(t *testing.T, srv *Server, addr string) {
				var conns []testConn
				for range test.conns {
					c := dialTest(t, addr)
					_ = c.SetDeadline(time.Now().Add(time.Minute))
					c.ask("PING\r\n", "+PONG\r\n")
					conns = append(conns, c)
				}
				for _, c := range conns {
					c.send(test.send)
				}
				srv.shutdown()
				for _, c := range conns {
					c.ask("", test.want)
				}
			})
		})
	}
}

// Whole commands that wait for their turn are not an unfinished one, and wait in the socket.
func TestCarriersWholeCommandsDoNotCount(t *testing.T) {
	o := carrierTest{rows: []*command{slowRow}, settings: []string{"client-query-buffer-limit", "128kb", "client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		const n = 100
		c := dialTest(t, addr)
		var sending sync.WaitGroup
		sending.Go(func() {
			c.send(strings.Repeat("SLOW\r\n"+frame("ECHO", strings.Repeat("y", 5_000)), n))
		})
		defer sending.Wait()
		for range n {
			c.ask("", "+OK\r\n$5000\r\n"+strings.Repeat("y", 5_000)+"\r\n")
			for _, s := range srv.allSessions() {
				if held := s.client.queryBytes.Load(); held > 2*64<<10 {
					t.Fatalf("%d bytes are held", held)
				}
			}
		}
		if closes := srv.stats.queryLimitCloses.Load(); closes != 0 {
			t.Errorf("%d closed", closes)
		}
	})
}

// Connections that came and went while the loop was busy take no place from one that stays.
func TestCarriersRefuseForTheLivingOnly(t *testing.T) {
	const places = 5
	entered, release, accepted := make(chan bool), make(chan bool), make(chan bool, 2*places)
	busyRow := &command{name: "busy", arity: 1, run: func(s *Session, _ [][]byte) { entered <- true; <-release; s.replyOK() }}
	o := carrierTest{rows: []*command{busyRow}, settings: []string{"io-threads", "1", "maxclients", fmt.Sprint(places)}}
	o.listener = func(_ *Server, ln net.Listener) net.Listener {
		return wrapped{ln, func(conn net.Conn) net.Conn { accepted <- true; return conn }}
	}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		if strings.HasSuffix(t.Name(), "goroutines") {
			return // which meet the end of their connections when they come to run
		}
		busy := dialTest(t, addr)
		busy.send("BUSY\r\n")
		<-entered
		for range places - 1 {
			gone := dialTest(t, addr)
			gone.send("PING\r\n")
			gone.Close()
		}
		stays := dialTest(t, addr)
		for range places + 1 {
			<-accepted
		}
		time.Sleep(10 * time.Millisecond) // in which it would be refused
		release <- true
		stays.ask("PING\r\n", "+PONG\r\n")
		busy.ask("", "+OK\r\n")
		if n := srv.stats.rejectedClients.Load(); n != 0 {
			t.Errorf("%d connections were refused", n)
		}
	})
}
