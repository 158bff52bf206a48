package resp

import (
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
}

func (g *goroutineCarrier) carry(conn net.Conn) {
	c := &goroutineConn{conn: conn}
	if c.session = g.srv.admitConn(conn, c); c.session == nil {
		return
	}
	g.running.Go(c.run)
}

// background runs in the caller's goroutine: all others go on meanwhile.
func (g *goroutineCarrier) background(step func() (more bool)) {
	for step() {
	}
}

func (g *goroutineCarrier) stop() {
	for _, s := range g.srv.allSessions() {
		s.kill()
	}
	g.running.Wait()
}

// goroutineConn is the Transport of one such connection.
type goroutineConn struct {
	conn    net.Conn
	session *Session
	out     []byte // replies to write when the batch is over; only its own goroutine's
	closing atomic.Bool
	waiting decisions // for the disk, as out does
}

func (c *goroutineConn) undecided() *decisions { return &c.waiting }

func (c *goroutineConn) Send(p []byte) int {
	c.out = append(c.out, p...)
	return len(c.out)
}

func (c *goroutineConn) Close() {
	c.closing.Store(true)
	if c.session.client.killed.Load() {
		_ = c.conn.SetDeadline(time.Unix(1, 0)) // ends a write that waits for the peer, too
	} else {
		c.Wake()
	}
}

// Wake ends the read that the goroutine waits in. Nobody else sets a deadline for it.
func (c *goroutineConn) Wake() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }

func (c *goroutineConn) run() {
	defer c.session.Closed()
	defer c.conn.Close()
	buf := make([]byte, 8<<10)
	for !c.closing.Load() {
		n, err := c.conn.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// Before Serve, so that what a Wake in between is about is seen there, or ends the next read.
			_ = c.conn.SetReadDeadline(time.Time{})
		} else if err != nil {
			return
		}
		srv := c.session.srv
		if srv.synchronous {
			srv.persist.Begin()
			c.session.Serve(buf[:n])
			err := srv.persist.Commit()
			c.waiting.settle(srv, err)
			c.out = c.session.committed(c.out, err)
		} else {
			c.session.Serve(buf[:n])
		}
		if !c.flush() {
			return
		}
	}
}

// flush writes the replies. It waits for a peer that reads slowly, which keeps nobody else, but not for one that reads
// nothing at all.
func (c *goroutineConn) flush() bool {
	defer func() { c.out = c.out[:0] }()
	if c.session.end == atOnce {
		return false
	}
	for len(c.out) > 0 {
		c.session.client.unsent.Store(int64(len(c.out)))
		if c.closing.Load() {
			_ = c.conn.SetWriteDeadline(time.Now().Add(lingerNS))
		}
		n, err := c.conn.Write(c.out[:min(len(c.out), flushAt)])
		if err != nil {
			return false
		}
		c.out = c.out[n:]
	}
	c.session.client.unsent.Store(0)
	return true
}
