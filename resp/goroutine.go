package resp

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// goroutineCarrier gives each connection a goroutine and leaves the waiting to Go's own poller. It serves wherever Go
// runs and costs 8 KB more a connection than an event loop; on Linux it is not used but in tests.
type goroutineCarrier struct {
	srv     *Server
	running sync.WaitGroup
	busy    atomic.Int64 // connections that have something to answer or to send
	calm    int          // how often in a row it was seen that there are none
}

func (g *goroutineCarrier) carry(ctx context.Context, conn net.Conn) {
	c := &goroutineConn{carrier: g, conn: conn}
	if c.session = g.srv.admitConn(ctx, conn, c, g); c.session == nil {
		return
	}
	c.session.Open(-1)
	g.running.Go(c.run)
}

// settle gives the goroutines the time to run: each meets the end of its connection by itself.
func (g *goroutineCarrier) settle(context.Context) { time.Sleep(time.Millisecond) }

// background runs in the caller's goroutine: all others go on meanwhile.
func (g *goroutineCarrier) background(step func() (more bool)) {
	for step() {
	}
}

// owes knows of what a connection's goroutine has begun to serve, and so not of what waits in a socket behind that. So it looks
// twice: once may be between two reads.
func (g *goroutineCarrier) owes(time.Duration) bool {
	if g.calm++; g.busy.Load() > 0 {
		g.calm = 0
	}
	return g.calm < 2
}

func (g *goroutineCarrier) stop() {
	for _, s := range g.srv.allSessions() {
		s.kill()
	}
	g.running.Wait()
}

// goroutineConn is the Transport of one such connection.
type goroutineConn struct {
	carrier *goroutineCarrier
	conn    net.Conn
	session *Session
	out     []byte // replies to write when the batch is over; only its own goroutine's
	isBusy  bool   // and is counted so
	closing atomic.Bool
	more    bool        // the session has more to serve before the next read
	cut     atomic.Bool // closing, without what has not left
	fresh   int         // where in out the replies begin that wait for it
	left    bool        // the round has ended before its time
}

// Meanwhile need not serve others, who have goroutines of their own, but has them not wait for this one's changes. What came before
// the command leaves, as far as the peer takes it at once.
func (c *goroutineConn) Meanwhile(wrote bool) {
	if c.session.srv.synchronous && !c.left {
		if wrote {
			return
		}
		c.commit()
		c.left = true
	}
	if len(c.out) == 0 {
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(50 * time.Microsecond))
	n, _ := c.conn.Write(c.out) // flush meets an error, too
	c.out, c.fresh = c.out[n:], max(0, c.fresh-n)
}

func (c *goroutineConn) Resume() {
	if c.left {
		c.left = false
		c.session.srv.persist.Begin()
	}
}

// commit ends a round, once what it has changed is on the disk.
func (c *goroutineConn) commit() {
	srv := c.session.srv
	err := srv.commit()
	c.out = append(c.out[:c.fresh], c.session.Confirm(c.out[c.fresh:], err)...)
	c.fresh = len(c.out)
}

// writeTurn bounds one try to write: after it the connection looks how much the peer has taken, and whether it is to end.
const writeTurn = 250 * time.Millisecond

func (c *goroutineConn) Send(p []byte) int {
	c.out = append(c.out, p...)
	return len(c.out)
}

func (c *goroutineConn) Close(now bool) {
	c.closing.Store(true)
	if now {
		c.cut.Store(true)
		_ = c.conn.SetDeadline(time.Unix(1, 0)) // ends a write that waits for the peer, too
	} else {
		c.Wake()
	}
}

// Wake ends the read that the goroutine waits in. Nobody else sets a deadline for it.
func (c *goroutineConn) Wake() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }

func (c *goroutineConn) run() {
	srv := c.session.srv
	defer c.session.Closed()
	defer c.conn.Close()
	defer c.setBusy(false)
	defer srv.survive("connection", "client", c.session.client.addr)
	buf := make([]byte, 8<<10)
	for !c.closing.Load() {
		n := 0
		if !c.more { // else what has been read is served before more is
			var err error
			n, err = c.conn.Read(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				// Before Serve, so that what a Wake in between is about is seen there, or ends the next read.
				_ = c.conn.SetReadDeadline(time.Time{})
			} else if err != nil {
				return
			}
		}
		c.setBusy(true)
		if srv.synchronous {
			srv.persist.Begin()
			c.more = c.session.Serve(buf[:n])
			c.commit()
		} else {
			c.more = c.session.Serve(buf[:n])
		}
		if !c.flush() {
			return
		}
		c.setBusy(c.more)
	}
}

func (c *goroutineConn) setBusy(on bool) {
	if c.isBusy == on {
		return
	}
	if c.isBusy = on; on {
		c.carrier.busy.Add(1)
	} else {
		c.carrier.busy.Add(-1)
	}
}

// flush writes the replies. It waits for a peer that reads slowly, which keeps nobody else. Where the peer reads nothing
// at all, --timeout ends that, or the connection's own end.
func (c *goroutineConn) flush() bool {
	s := c.session
	defer func() { c.out, c.fresh = c.out[:0], 0 }()
	if c.cut.Load() {
		return false
	}
	for stuckNS := int64(0); len(c.out) > 0; {
		s.Unsent(len(c.out))
		_ = c.conn.SetWriteDeadline(time.Now().Add(writeTurn))
		if c.cut.Load() { // whose deadline may just have been lost
			return false
		}
		n, err := c.conn.Write(c.out[:min(len(c.out), flushAt)])
		c.out = c.out[n:]
		nowNS := s.srv.clock()
		switch {
		case err == nil:
			stuckNS = 0
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case n > 0 || stuckNS == 0:
			stuckNS = nowNS
		case s.Overdue():
			return false
		case c.closing.Load() && nowNS-stuckNS > lingerNS:
			return false
		}
	}
	s.Unsent(0)
	return true
}
