package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// goroutines are connections each of which has a goroutine: those whose handshake of TLS is not over, and where there are no event loops,
// all. The zero value has none.
type goroutines struct {
	running sync.WaitGroup
	mu      sync.Mutex
	conns   map[any]func() // by connection: what ends it
	calm    int            // how often in a row owe has seen nobody busy
}

func (g *goroutines) start(c any, run, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		g.conns = map[any]func(){}
	}
	g.conns[c] = end
	g.running.Go(run)
}

func (g *goroutines) ended(c any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

func (g *goroutines) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns) > 0
}

// settle gives the goroutines a millisecond to run: each notices the end of its connection by itself.
func (g *goroutines) settle(context.Context) {
	if g.any() {
		time.Sleep(time.Millisecond)
	}
}

// owe reports whether they may owe answers. It looks twice: the first look may fall between two reads.
func (g *goroutines) owe(busy bool) bool {
	if g.calm++; busy {
		g.calm = 0
	}
	return g.calm < 2 && g.any()
}

func (g *goroutines) stop() {
	g.mu.Lock()
	for _, end := range g.conns {
		end()
	}
	g.mu.Unlock()
	g.running.Wait()
}

// goroutineCarrier gives each connection a goroutine, which waits in Go's poller. It runs wherever Go runs. A connection takes
// 8 KB more than with an event loop.
type goroutineCarrier struct {
	t *Transport
	goroutines
	busy   atomic.Int64 // connections that do not wait for input
	looked bool         // the server stops; guarded by mu
}

func (g *goroutineCarrier) adopt(conn net.Conn, session Session, over *secure) {
	c := &goroutineConn{carrier: g, socket: conn, stream: stream{session: session, secure: over}}
	g.start(c, c.run, func() { c.Close(true) })
}

// background runs step in the caller's goroutine: all others go on meanwhile.
func (g *goroutineCarrier) background(step func() (more bool)) {
	for step() {
	}
}

func (g *goroutineCarrier) owes(time.Duration) bool { return g.owe(g.arriving() || g.busy.Load() > 0) }

// arriving reports whether input that had arrived at the first look waits for its goroutine. On a loaded machine one did not run for 50 ms,
// and 250 commands were not answered.
func (g *goroutineCarrier) arriving() (some bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		c := conn.(*goroutineConn)
		waits := hasInput(c.socket)
		if waits && !g.looked {
			c.owed = c.heard.Load() + onItsWay
		}
		some = some || waits && c.heard.Load() < c.owed
	}
	g.looked = true
	return some
}

// goroutineConn is a connection with a goroutine, which alone uses its fields except life.
type goroutineConn struct {
	carrier *goroutineCarrier
	socket  net.Conn
	stream
	left  bool         // ServeOthers has ended the round early
	heard atomic.Int64 // bytes of input
	owed  int64        // of heard, for how many a server that stops waits; guarded by the carrier's mu
}

// ServeOthers need not serve other connections, which have goroutines of their own. It ends the round, so that they do not wait for
// this one. Earlier replies leave, as far as the peer takes them at once.
func (c *goroutineConn) ServeOthers(wrote bool) {
	if c.carrier.t.synced && !c.left {
		if wrote {
			return
		}
		c.commit()
		c.left = true
	}
	if p, _ := c.next(); len(p) > 0 { // flush meets an error, too
		_ = c.socket.SetWriteDeadline(time.Now().Add(50 * time.Microsecond))
		n, _ := c.socket.Write(p)
		c.took(n)
	}
}

func (c *goroutineConn) Resume() {
	if c.left {
		c.left = false
		c.carrier.t.server.Begin()
	}
}

func (c *goroutineConn) RoundNS() int64 { return 0 }

// commit ends a round when its changes are on the disk, or at once if there are none.
func (c *goroutineConn) commit() {
	var err error
	if server := c.carrier.t.server; c.session.Wrote() {
		err = server.Commit()
	} else {
		server.Leave()
	}
	c.confirm(err)
}

// writeTurn bounds one write. After each, the connection checks how much the peer has taken, and whether it must
// end.
const writeTurn = 250 * time.Millisecond

func (c *goroutineConn) Send(p []byte) int {
	c.out = append(c.out, p...)
	return c.pending()
}

func (c *goroutineConn) Hold() (release func()) { return func() {} }

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
	defer c.end()
	c.carrier.busy.Add(1)
	defer c.carrier.busy.Add(-1)
	defer func() {
		if cause := recover(); cause != nil {
			c.carrier.t.server.Panicked(cause, "connection", c.session)
		}
	}()
	c.open(c, -1)
	c.reach(open)
	for buf := make([]byte, 8<<10); c.at() == open; {
		data, ok := c.await(buf)
		if !ok {
			return
		}
		c.round(data)
		if !c.flush() {
			return
		}
	}
}

// await returns what is to be served next, or nil after a Wake. It returns false when the connection is gone.
func (c *goroutineConn) await(buf []byte) (data []byte, ok bool) {
	if c.paused {
		return nil, c.woken(c.awaitWake(buf))
	}
	if data, ok = c.arrived(); ok {
		return data, true
	}
	c.carrier.busy.Add(-1)
	n, err := c.read(buf)
	c.carrier.busy.Add(1)
	c.heard.Add(int64(n))
	if n > 0 { // TLS may tell the end together with what came last, and tells it again
		return buf[:n], true
	}
	return nil, c.woken(err)
}

func (c *goroutineConn) read(buf []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Read(buf)
	}
	return c.socket.Read(buf)
}

// woken reports whether a wait ended by a Wake.
func (c *goroutineConn) woken(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	_ = c.socket.SetReadDeadline(time.Time{}) // before Serve: a Wake from now on is seen by Serve or ends the next read
	c.paused = false
	return true
}

// awaitWake returns the error that ends the wait: os.ErrDeadlineExceeded for a Wake. It reads nothing, except to find the farewell of a
// peer with TLS. Go's poller also wakes it for input, and then it only checks for the end of the connection.
func (c *goroutineConn) awaitWake(buf []byte) (err error) {
	for err == nil && c.leaves && c.secure.listens() {
		n := 0
		n, err = c.secure.Read(buf)
		c.secure.behind = append(c.secure.behind, buf[:n]...)
	}
	if err != nil {
		return err
	}
	return awaitEnd(c.socket, c.leaves)
}

// round hands data to the session, which answers, and commits its changes. It commits after a panic, too: other rounds would wait for that.
func (c *goroutineConn) round(data []byte) {
	t := c.carrier.t
	if t.synced {
		t.server.Begin()
		defer c.commit()
	}
	c.more = c.session.Serve(data)
}

// end closes the socket, and tells the carrier and the session that the connection is gone.
func (c *goroutineConn) end() {
	if c.secure != nil {
		c.secure.sayFarewell(c.socket, c.at() == cut, !c.paused)
	}
	c.socket.Close()
	c.reach(gone)
	c.carrier.ended(c)
	c.session.Closed()
}

// flush writes the replies. It waits for a peer that reads slowly, which delays no other connection. If the peer reads nothing,
// --timeout ends the wait or, once the connection is closing, lingerNS does. It returns false if the connection must end.
func (c *goroutineConn) flush() bool {
	s, server := c.session, c.carrier.t.server
	defer func() { c.out, c.sent, c.fresh = c.out[:0], 0, 0 }()
	if c.at() == cut {
		return false
	}
	for stuckNS := int64(0); c.pending() > 0; {
		s.Unsent(c.pending())
		p, err := c.next()
		if err != nil {
			return false
		}
		_ = c.socket.SetWriteDeadline(time.Now().Add(writeTurn))
		if c.at() == cut { // SetWriteDeadline may just have overwritten Close's deadline
			return false
		}
		n, err := c.socket.Write(p[:min(len(p), writeSize)])
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
