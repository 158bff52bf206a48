package session

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/session/sessiontest"
)

// slowRow is a command that takes a while.
var slowRow = &command.Row{Name: "slow", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) {
	time.Sleep(6 * time.Millisecond)
	s.call.OK()
})}

// bigRow is a command whose reply is more than sockets hold.
var bigRow = &command.Row{Name: "big", Arity: 1, Run: onSession(func(s *Session, _ [][]byte) {
	s.call.Out = append(s.call.Out, strings.Repeat(bigPart, bigParts)...)
})}

// A reply of bigRow is so many of these.
const bigParts = 270

var bigPart = "$60000\r\n" + strings.Repeat("x", 60_000) + "\r\n"

func closeWrite(c sessiontest.Client) { _ = c.Conn.(*net.TCPConn).CloseWrite() }

// Connections may be killed at any moment of their coming.
func TestCarriersKillWhileConnectionsArrive(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, srv *Service, addr string) {
		killer := sessiontest.Dial(t, addr)
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
			killer.Send("CLIENT KILL TYPE normal SKIPME yes\r\n")
			if line, err := killer.ReadString('\n'); err != nil || line[0] != ':' {
				t.Fatalf("%q, %v", line, err)
			}
		}
		arriving.Wait()
		eventually(t, "end of all but the killer", func() bool { return srv.Clients.Count() == 1 })
		killer.Ask("PING\r\n", "+PONG\r\n")
	})
}

func unsent(srv *Service) (bytes int64) {
	for _, c := range srv.Clients.All() {
		bytes += c.Unsent.Load()
	}
	return bytes
}

// What arrives before the peer closes its half is answered, however long that takes.
func TestCarriersAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ send, want string }{
		"commands":              {strings.Repeat("SLOW\r\n", 20) + "PING\r\n", strings.Repeat("+OK\r\n", 20) + "+PONG\r\n"},
		"a transaction":         {"MULTI\r\n" + strings.Repeat("SLOW\r\n", 5) + "EXEC\r\nSLOW\r\nPING\r\n", "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 5) + "*5\r\n" + strings.Repeat("+OK\r\n", 6) + "+PONG\r\n"},
		"a transaction's start": {"SLOW\r\nMULTI\r\nSLOW\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n"},
		"half a command":        {"SLOW\r\nSLOW\r\nPING\r\n*1\r\n$4\r\nPI", "+OK\r\n+OK\r\n+PONG\r\n"},
		"more than one read": {strings.Repeat("SLOW\r\n"+sessiontest.Frame("ECHO", strings.Repeat("y", 20_000)), 20),
			strings.Repeat("+OK\r\n$20000\r\n"+strings.Repeat("y", 20_000)+"\r\n", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			carrierTest{rows: []*command.Row{slowRow}}.run(t, func(t *testing.T, srv *Service, addr string) {
				c := sessiontest.Dial(t, addr)
				c.Ask("PING\r\n", "+PONG\r\n")
				c.Send(test.send)
				closeWrite(c)
				c.Ask("", test.want)
				c.WantClosed()
			})
		})
	}
}

// Whole commands that wait for their turn are not an unfinished one, and wait in the socket.
func TestCarriersWholeCommandsDoNotCount(t *testing.T) {
	t.Parallel()
	o := carrierTest{rows: []*command.Row{slowRow},
		settings: []string{"client-query-buffer-limit", "128kb", "client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Service, addr string) {
		const n = 100
		c := sessiontest.Dial(t, addr)
		var sending sync.WaitGroup
		sending.Go(func() {
			c.Send(strings.Repeat("SLOW\r\n"+sessiontest.Frame("ECHO", strings.Repeat("y", 5_000)), n))
		})
		defer sending.Wait()
		for range n {
			c.Ask("", "+OK\r\n$5000\r\n"+strings.Repeat("y", 5_000)+"\r\n")
			for _, other := range srv.Clients.All() {
				if held := other.QueryBytes.Load(); held > 2*64<<10 {
					t.Fatalf("%d bytes are held", held)
				}
			}
		}
		if closes := srv.Stats.QueryLimitCloses.Load(); closes != 0 {
			t.Errorf("%d closed", closes)
		}
	})
}

// CLIENT LIST shows what a peer has not read that goes on asking.
func TestUnreadRepliesAreShown(t *testing.T) {
	o := carrierTest{settings: []string{"client-output-buffer-limit", "64mb"}}
	o.run(t, func(t *testing.T, srv *Service, addr string) {
		deaf := sessiontest.Dial(t, addr)
		go func() {
			_, _ = deaf.Conn.Write([]byte(strings.Repeat(sessiontest.Frame("ECHO", strings.Repeat("x", 60000)), 400)))
		}()
		least := int64(8 << 20)
		if strings.Contains(t.Name(), "goroutines") { // reads no more than it has answered
			least = 1
		}
		eventually(t, "unread replies are shown", func() bool {
			return slices.ContainsFunc(srv.Clients.All(), func(c *client.Client) bool { return c.Unsent.Load() >= least })
		})
	})
}
