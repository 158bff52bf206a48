package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// goroutineCarrier gives each connection a goroutine, which waits in Go's poller. It runs wherever Go runs. A connection takes
// 8 KB more than with an event loop. On Linux it carries what an event loop cannot read, such as TLS.
type goroutineCarrier struct {
	t       *Transport
	running sync.WaitGroup
	mu      sync.Mutex
	conns   map[*goroutineConn]struct{}
	busy    atomic.Int64 // connections that have something to answer or to send
	calm    int          // how often in a row owes has seen no busy connection
}

func (g *goroutineCarrier) carry(ctx context.Context, conn net.Conn) {
	c := &goroutineConn{carrier: g, conn: conn}
	if c.session = g.t.admit(ctx, conn, c); c.session == nil {
		return
	}
	g.mu.Lock()
	g.conns[c] = struct{}{}
	g.mu.Unlock()
	c.session.Open(-1)
	g.running.Go(c.run)
}

// settle gives the goroutines a millisecond to run: each notices the end of its connection by itself.
func (g *goroutineCarrier) settle(context.Context) {
	if g.any() {
		time.Sleep(time.Millisecond)
	}
}

// background runs step in the caller's goroutine: all others go on meanwhile.
func (g *goroutineCarrier) background(step func() (more bool)) {
	for step() {
	}
}

func (g *goroutineCarrier) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns) > 0
}

// owes sees only what goroutines have begun to serve, not what waits in a socket. So it looks twice: the first look may fall
// between two reads.
func (g *goroutineCarrier) owes(time.Duration) bool {
	if g.calm++; g.busy.Load() > 0 {
		g.calm = 0
	}
	return g.calm < 2 && g.any()
}

func (g *goroutineCarrier) stop() {
	g.mu.Lock()
	for c := range g.conns {
		c.Close(true)
	}
	g.mu.Unlock()
	g.running.Wait()
}

// goroutineConn is a connection with a goroutine.
type goroutineConn struct {
	carrier *goroutineCarrier
	conn    net.Conn
	session Session
	life
	out    []byte // replies to write at the end of the batch; only the connection's goroutine uses it
	isBusy bool   // it counts in carrier.busy
	more   bool   // the session has more to serve before the next read
	fresh  int    // where in out the replies of this round begin, which wait for the disk
	left   bool   // Meanwhile has ended the round early
	paused bool   // Serve is not called until Wake
	leaves bool   // while paused, it ends when its peer closes its half
}

// Meanwhile need not serve other connections, which have goroutines of their own. It ends the round, so that they do not wait for
// this one. Earlier replies leave, as far as the peer takes them at once.
func (c *goroutineConn) Meanwhile(wrote bool) {
	if c.carrier.t.synced && !c.left {
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
		c.carrier.t.server.Begin()
	}
}

// commit ends a round when its changes are on the disk.
func (c *goroutineConn) commit() {
	err := c.carrier.t.server.Commit()
	c.out = append(c.out[:c.fresh], c.session.Confirm(c.out[c.fresh:], err)...)
	c.fresh = len(c.out)
}

// writeTurn and writeSize bound one write. After each, the connection checks how much the peer has taken, and whether it must
// end.
const (
	writeTurn = 250 * time.Millisecond
	writeSize = 64 << 10
)

func (c *goroutineConn) Send(p []byte) int {
	c.out = append(c.out, p...)
	return len(c.out)
}

func (c *goroutineConn) Close(now bool) {
	if now {
		c.reach(cut)
		_ = c.conn.SetDeadline(time.Unix(1, 0)) // ends a write that waits for the peer, too
	} else if c.reach(closing) {
		c.Wake()
	}
}

// Wake ends the read that the goroutine waits in, by its deadline. Only Wake and Close set one.
func (c *goroutineConn) Wake() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }

func (c *goroutineConn) run() {
	t := c.carrier.t
	defer c.end()
	defer c.conn.Close()
	defer c.setBusy(false)
	defer func() {
		if cause := recover(); cause != nil {
			t.server.Panicked(cause, "connection", c.session)
		}
	}()
	c.reach(open)
	buf := make([]byte, 8<<10)
	for c.at() == open {
		var data []byte
		switch {
		case c.paused:
			if !c.awaitWake() {
				return
			}
		case !c.more: // otherwise what was read is served first
			n, err := c.conn.Read(buf)
			if n > 0 {
				data = buf[:n]
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				// Reset before Serve: a Wake from now on is seen by Serve or ends the next read.
				_ = c.conn.SetReadDeadline(time.Time{})
			} else if err != nil {
				return
			}
		}
		c.setBusy(true)
		c.round(data)
		if !c.flush() {
			return
		}
		c.setBusy(c.more || c.paused)
	}
}

func (c *goroutineConn) Pause(abandons bool) { c.paused, c.leaves = true, abandons }

// awaitWake waits until the connection is woken, or returns false when its peer is gone. It reads nothing. Go's poller also
// wakes it for input, and then it only checks for the end of the connection.
func (c *goroutineConn) awaitWake() bool {
	conn := c.conn
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		ended = hasEnded(fd, c.leaves)
		return ended
	})
	if ended || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	_ = c.conn.SetReadDeadline(time.Time{}) // before Serve, as in run
	c.paused = false
	return true
}

// hasEnded reports whether a connection is broken or, with half, its peer has closed its half. Systems other than Linux
// do not tell that while there is something to read.
func hasEnded(fd uintptr, half bool) bool {
	poll := []unix.PollFd{{Fd: int32(fd)}}
	if half {
		poll[0].Events = pollHalf
	}
	for {
		if _, err := unix.Poll(poll, 0); err != unix.EINTR {
			return poll[0].Revents != 0
		}
	}
}

// round has the session answer, and commits its changes. It commits after a panic, too: other rounds would wait for that.
func (c *goroutineConn) round(data []byte) {
	t := c.carrier.t
	if t.synced {
		t.server.Begin()
		defer c.commit()
	}
	c.more = c.session.Serve(data)
}

// end tells the carrier and the session that the connection is gone.
func (c *goroutineConn) end() {
	c.reach(gone)
	c.carrier.mu.Lock()
	delete(c.carrier.conns, c)
	c.carrier.mu.Unlock()
	c.session.Closed()
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

// flush writes the replies. It waits for a peer that reads slowly, which delays no other connection. If the peer reads nothing,
// --timeout ends the wait or, once the connection is closing, lingerNS does. It returns false if the connection must end.
func (c *goroutineConn) flush() bool {
	s, server := c.session, c.carrier.t.server
	defer func() { c.out, c.fresh = c.out[:0], 0 }()
	if c.at() == cut {
		return false
	}
	for stuckNS := int64(0); len(c.out) > 0; {
		s.Unsent(len(c.out))
		_ = c.conn.SetWriteDeadline(time.Now().Add(writeTurn))
		if c.at() == cut { // SetWriteDeadline may just have overwritten Close's deadline
			return false
		}
		n, err := c.conn.Write(c.out[:min(len(c.out), writeSize)])
		c.out = c.out[n:]
		nowNS := server.NowNS()
		switch {
		case err == nil:
			stuckNS = 0
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case n > 0 || stuckNS == 0:
			stuckNS = nowNS
		case s.Overdue():
			return false
		case c.at() == closing && nowNS-stuckNS > lingerNS:
			return false
		}
	}
	s.Unsent(0)
	return true
}
