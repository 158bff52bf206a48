package transport

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// goroutineCarrier gives each connection a goroutine, which waits in Go's poller. It runs wherever Go runs. A connection takes
// 8 KB more than with an event loop. On Linux it carries TLS handshakes.
type goroutineCarrier struct {
	t       *Transport
	turns   *turns // of handshakes
	running sync.WaitGroup
	mu      sync.Mutex
	conns   map[*goroutineConn]struct{}
	busy    atomic.Int64 // connections that have something to answer or to send
	calm    int          // how often in a row owes has seen no busy connection
}

func (g *goroutineCarrier) carry(ctx context.Context, conn net.Conn) {
	session, refusal, _ := g.t.admit(ctx, conn)
	if session == nil {
		refuse(conn, refusal)
		return
	}
	g.start(&goroutineConn{carrier: g, socket: conn, session: session})
}

func (g *goroutineCarrier) start(c *goroutineConn) {
	g.mu.Lock()
	g.conns[c] = struct{}{}
	g.mu.Unlock()
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
	socket  net.Conn
	secure  *secure // TLS on the socket; nil: none
	session Session // nil: it is only told why it is not served
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
	if p, _ := c.next(math.MaxInt); len(p) > 0 { // flush meets an error, too
		_ = c.socket.SetWriteDeadline(time.Now().Add(50 * time.Microsecond))
		n, _ := c.socket.Write(p)
		c.took(n)
	}
}

// next returns what the socket is to take next, at most size bytes without TLS.
func (c *goroutineConn) next(size int) ([]byte, error) {
	if c.secure == nil {
		return c.out[:min(len(c.out), size)], nil
	}
	n, err := c.secure.seal(c.out)
	c.shift(n)
	return c.secure.sealed(), err
}

// took tells that the socket has taken the first n bytes of next's.
func (c *goroutineConn) took(n int) {
	if c.secure == nil {
		c.shift(n)
	} else {
		c.secure.took(n)
	}
}

func (c *goroutineConn) shift(n int) { c.out, c.fresh = c.out[n:], max(0, c.fresh-n) }

// pending is how many bytes the socket has not taken.
func (c *goroutineConn) pending() int {
	if c.secure == nil {
		return len(c.out)
	}
	return len(c.out) + len(c.secure.sealed())
}

func (c *goroutineConn) Resume() {
	if c.left {
		c.left = false
		c.carrier.t.server.Begin()
	}
}

// commit ends a round when its changes are on the disk, or at once if there are none.
func (c *goroutineConn) commit() {
	var err error
	if server := c.carrier.t.server; c.session.Wrote() {
		err = server.Commit()
	} else {
		server.Leave()
	}
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
	return c.pending()
}

func (c *goroutineConn) Close(now bool) {
	if now {
		c.reach(cut)
		_ = c.socket.SetDeadline(time.Unix(1, 0)) // ends a write that waits for the peer, too
	} else if c.reach(closing) {
		c.Wake()
	}
}

// Wake ends the read that the goroutine waits in, by its deadline. Only Wake and Close set one.
func (c *goroutineConn) Wake() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) }

func (c *goroutineConn) run() {
	t := c.carrier.t
	defer c.end()
	defer c.hangUp()
	defer c.setBusy(false)
	defer func() {
		if cause := recover(); cause != nil {
			t.server.Panicked(cause, "connection", c.session)
		}
	}()
	if c.secure != nil && !c.handshake() {
		return
	}
	if c.secure != nil && c.secure.byLoops {
		c.handOver()
		return
	}
	c.session.Open(c, -1)
	if c.secure != nil {
		c.secure.identify(c.session)
	}
	c.reach(open)
	buf := make([]byte, 8<<10)
	for last := false; !last && c.at() == open; {
		var data []byte
		switch {
		case c.paused:
			if !c.awaitWake(buf) {
				return
			}
		case c.more: // what was read is served first
		case c.secure.hasBehind():
			data = c.secure.takeBehind()
		default:
			n, err := c.read(buf)
			if n > 0 {
				data = buf[:n]
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				// Reset before Serve: a Wake from now on is seen by Serve or ends the next read.
				_ = c.socket.SetReadDeadline(time.Time{})
			} else if err != nil && n == 0 {
				return
			} else if err != nil { // TLS tells the end together with what came last
				last = true
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

func (c *goroutineConn) read(buf []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Read(buf)
	}
	return c.socket.Read(buf)
}

func (c *goroutineConn) Pause(abandons bool) { c.paused, c.leaves = true, abandons }

func (c *goroutineConn) RoundNS() int64 { return 0 }

// awaitWake waits until the connection is woken, or returns false when its peer is gone. It reads nothing, except to find the farewell of a
// peer with TLS. Go's poller also wakes it for input, and then it only checks for the end of the connection.
func (c *goroutineConn) awaitWake(buf []byte) bool {
	var err error
	for err == nil && c.leaves && c.secure.listens() {
		n := 0
		n, err = c.secure.Read(buf)
		c.secure.behind = append(c.secure.behind, buf[:n]...)
	}
	if err != nil {
		return c.woken(err)
	}
	socket, ok := c.socket.(syscall.Conn)
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
	return !ended && c.woken(err)
}

// woken reports whether the end of a wait was a Wake.
func (c *goroutineConn) woken(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	_ = c.socket.SetReadDeadline(time.Time{}) // before Serve, as in run
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
	if c.session != nil {
		c.session.Closed()
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

// flush writes the replies. It waits for a peer that reads slowly, which delays no other connection. If the peer reads nothing,
// --timeout ends the wait or, once the connection is closing, lingerNS does. It returns false if the connection must end.
func (c *goroutineConn) flush() bool {
	s, server := c.session, c.carrier.t.server
	defer func() { c.out, c.fresh = c.out[:0], 0 }()
	if c.at() == cut {
		return false
	}
	for stuckNS := int64(0); c.pending() > 0; {
		s.Unsent(c.pending())
		p, err := c.next(writeSize)
		if err != nil {
			return false
		}
		_ = c.socket.SetWriteDeadline(time.Now().Add(writeTurn))
		if c.at() == cut { // SetWriteDeadline may just have overwritten Close's deadline
			return false
		}
		n, err := c.socket.Write(p)
		c.took(n)
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
