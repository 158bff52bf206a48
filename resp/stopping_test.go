package resp

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/command"
	"celld/resp/session/sessiontest"
	"celld/store/storetest"
)

// A server that is told to stop answers what has arrived, in slices, behind a full buffer, or on many connections.
func TestCarriersStopAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		conns      int
		send, want string
	}{
		"slow commands":      {1, strings.Repeat("SLEEP 0.006\r\n", 250), strings.Repeat("+OK\r\n", 250)}, // for longer than busyNS
		"one slow command":   {1, "SLEEP 0.2\r\nPING\r\n", "+OK\r\n+PONG\r\n"},
		"more than one read": {1, strings.Repeat("SLEEP 0.006\r\n"+sessiontest.Frame("ECHO", strings.Repeat("y", 10_000)), 250), strings.Repeat("+OK\r\n$10000\r\n"+strings.Repeat("y", 10_000)+"\r\n", 250)},
		"many connections":   {500, "SLEEP 0.006\r\n", "+OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := carrierTest{rows: []*command.Row{sleepRow(t)},
				settings: []string{"client-output-buffer-limit", "64mb", "shutdown-timeout", "60"}}
			o.run(t, func(t *testing.T, srv *Server, addr string) {
				var conns []sessiontest.Client
				for range test.conns {
					c := sessiontest.Dial(t, addr)
					_ = c.SetDeadline(time.Now().Add(celldtest.Patience))
					c.Ask("PING\r\n", "+PONG\r\n")
					conns = append(conns, c)
				}
				for _, c := range conns {
					c.Send(test.send)
				}
				srv.Shutdown(func() {})
				for _, c := range conns {
					c.Ask("", test.want)
				}
			})
		})
	}
}

// A server that stops refuses all that wait at once, and those that come then.
func TestStoppingWhileSomeQueue(t *testing.T) {
	eachCarrier(t, func(t *testing.T, srv *Server, addr string) {
		first := sessiontest.Dial(t, addr)
		first.Send("CL.TAKE k 1/24h,algo=conc\r\n")
		if reply, err := sessiontest.Words(first.Reader); err != nil || reply[0] != ":0" {
			t.Fatal(reply, err)
		}
		var conns []sessiontest.Client
		for i := range 20 {
			c := sessiontest.Dial(t, addr)
			c.Send("CL.TAKE k 1/24h,algo=conc WAIT 60000\r\n" + strings.Repeat("CL.TAKE k 1/24h,algo=conc WAIT 60000\r\n", i%3))
			conns = append(conns, c)
			eventually(t, "call that waits", func() bool {
				calls, _ := srv.sessions.Port.Waiting()
				return calls == int64(i+1)
			})
		}
		srv.Shutdown(func() {})
		var answered atomic.Int64
		var all sync.WaitGroup
		for i, c := range conns {
			all.Go(func() {
				_ = c.SetDeadline(time.Now().Add(sessiontest.Patience))
				refused := 0
				for {
					reply, err := sessiontest.Words(c.Reader)
					if err != nil {
						break
					}
					if reply[0] == ":1" {
						refused++
					}
				}
				if refused != 1+i%3 {
					t.Errorf("%d: %d are refused", i, refused)
				}
				answered.Add(1)
			})
		}
		all.Wait()
		if answered.Load() != 20 {
			t.Errorf("%d were answered", answered.Load())
		}
	})
}

// A server that stops waits for answers as long as for other replies, and not longer.
func TestStoppingWhileSomeWait(t *testing.T) {
	t.Parallel()
	onLater(t, "1", func(t *testing.T, srv *Server, l *storetest.Later, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Send(laterCall + "\r\n")
		eventually(t, "question", func() bool { return l.Waiting() == 1 })
	})
	onLater(t, "1000", func(t *testing.T, srv *Server, l *storetest.Later, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Send(laterCall + "\r\n")
		eventually(t, "question", func() bool { return l.Waiting() == 1 })
		srv.Shutdown(func() {})
		eventually(t, "end of the listener", func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
		skew(srv, 2*time.Second)                                     // nothing has come for 2 s
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // some looks at what is owed
		if _, err := c.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v, though an answer is owed", err)
		}
		_ = c.SetReadDeadline(time.Now().Add(sessiontest.Patience))
		l.Answer(0)
		c.Ask("", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n")
	})
}

// A server that stops ends a script that runs for ever, once the shutdown timeout is over.
func TestStoppingWhileAScriptRuns(t *testing.T) {
	for name, wrote := range map[string]string{"that has written": "redis.call('SET', 'k', '7') ", "that has not": ""} {
		for _, limit := range []string{"1", "0", "3600000"} {
			if limit != "1" && !celldtest.Thorough {
				continue // each takes a second
			}
			t.Run(name+", limit "+limit, func(t *testing.T) {
				o := carrierTest{settings: []string{"lua-time-limit", limit, "shutdown-timeout", "1"}}
				o.run(t, func(t *testing.T, srv *Server, addr string) {
					c := sessiontest.Dial(t, addr)
					c.Send(sessiontest.Frame("EVAL", wrote+"while true do pcall(function() while true do end end) end", "0"))
					eventually(t, "script", func() bool {
						lane := srv.sessions.Execution.Lane(0)
						if !lane.TryRLock() {
							return true // it runs alone
						}
						lane.RUnlock()
						return srv.Busy()
					})
					srv.Shutdown(func() {})
					wantStopped(c)
				})
			})
		}
	}
}

func TestShutdownNosaveWhileAScriptRuns(t *testing.T) {
	carrierTest{settings: []string{"shutdown-timeout", "1", "lua-time-limit", "1"}}.run(t, func(t *testing.T, srv *Server, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Send(sessiontest.Frame("EVAL", "redis.call('SET', 'k', '7') while true do end", "0"))
		eventually(t, "busy script", srv.Busy)
		killer := sessiontest.Dial(t, addr)
		killer.Send("SHUTDOWN NOSAVE\r\n")
		wantStopped(c)
	})
}

const laterCall = "CL.THROTTLE k 4 1 60"

// onLater runs a test whose limiter answers when the test says so.
func onLater(t *testing.T, timeoutS string, test func(t *testing.T, srv *Server, l *storetest.Later, addr string)) {
	var limiters sync.Map // by server
	o := carrierTest{settings: []string{"shutdown-timeout", timeoutS}, prepare: func(srv *Server) {
		l := &storetest.Later{Of: srv.sessions.Store}
		srv.sessions.UseEngine(here{limited{&sessiontest.Engine{Store: srv.sessions.Store, Now: srv.sessions.Clock}, l}})
		limiters.Store(srv, l)
	}}
	o.run(t, func(t *testing.T, srv *Server, addr string) {
		l, _ := limiters.Load(srv)
		test(t, srv, l.(*storetest.Later), addr)
	})
}

// here is an engine whose keys are in the process.
type here struct{ limited }

func (here) InProcess() bool { return true }

// wantStopped waits for the end of a script's connection, which is told why if there is the time.
func wantStopped(c sessiontest.Client) {
	c.T.Helper()
	rest, err := io.ReadAll(c)
	if err != nil || len(rest) > 0 && !strings.HasPrefix(string(rest), "-ERR Script ended: the server is stopping") {
		c.T.Errorf("%q, %v", rest, err)
	}
}
