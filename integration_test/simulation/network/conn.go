package network

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes are under way before a writer waits.
const window = 64 << 10

// pipe carries bytes one way.
type pipe struct {
	mu      sync.Mutex
	chunks  []chunk // in the order of their arrival
	bytes   int     // of the chunks
	fin     bool    // nothing follows
	reset   bool
	unread  bool      // the reader has closed its end
	last    time.Time // when what was written last arrives
	changed *change
}

type chunk struct {
	at    time.Time // when it arrives
	bytes []byte
}

func newPipe() *pipe { return &pipe{changed: newChange()} }

func (p *pipe) set(do func()) {
	p.mu.Lock()
	do()
	p.mu.Unlock()
	p.changed.happens()
}

// Conn is one end of a connection.
type Conn struct {
	network       *Network
	local, remote netip.AddrPort
	in, out       *pipe
	peer          *Conn
	ended         chan struct{} // closed with this end

	mu     sync.Mutex
	closed bool
	reads  time.Time // deadlines; zero: none
	writes time.Time
}

// Read returns some of what has arrived. The error is io.EOF at the end, os.ErrDeadlineExceeded, net.ErrClosed or ECONNRESET.
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	most := len(b)
	if c.network.Pieces {
		most = 1 + int(c.network.below(int64(len(b))-1))
	}
	err = c.await(func(now time.Time) (done bool, until time.Time, err error) {
		p := c.in
		switch {
		case p.reset:
			return true, now, syscall.ECONNRESET
		case len(p.chunks) > 0 && p.chunks[0].at.After(now):
			return false, p.chunks[0].at, nil
		case len(p.chunks) == 0 && p.fin && !p.last.After(now):
			return true, now, io.EOF
		case len(p.chunks) == 0 && p.fin:
			return false, p.last, nil
		case len(p.chunks) == 0:
			return false, time.Time{}, nil
		}
		for n < most && len(p.chunks) > 0 && !p.chunks[0].at.After(now) {
			got := copy(b[n:most], p.chunks[0].bytes)
			n += got
			if p.chunks[0].bytes = p.chunks[0].bytes[got:]; len(p.chunks[0].bytes) == 0 {
				p.chunks = p.chunks[1:]
			}
		}
		p.bytes -= n
		return true, now, nil
	})
	if n > 0 {
		c.in.changed.happens()
	}
	return n, err
}

// AwaitEnd implements transport.Waiter: TCP tells of a peer that has closed its half only when all that it sent is there.
func (c *Conn) AwaitEnd(half bool) error {
	return c.await(func(now time.Time) (done bool, until time.Time, err error) {
		switch p := c.in; {
		case p.reset:
			return true, now, syscall.ECONNRESET
		case half && p.fin && !p.last.After(now):
			return true, now, io.EOF
		case half && p.fin:
			return false, p.last, nil
		}
		return false, time.Time{}, nil
	})
}

// await asks again and again whether something is there, which it does at some instant or when the pipe has changed.
func (c *Conn) await(look func(now time.Time) (done bool, until time.Time, err error)) error {
	for {
		next := c.in.changed.next()
		now := time.Now()
		c.mu.Lock()
		closed, deadline := c.closed, c.reads
		c.mu.Unlock()
		if closed {
			return net.ErrClosed
		}
		if !deadline.IsZero() && !deadline.After(now) {
			return os.ErrDeadlineExceeded
		}
		c.in.mu.Lock()
		done, until, err := look(now)
		c.in.mu.Unlock()
		if done {
			return err
		}
		if !deadline.IsZero() && (until.IsZero() || deadline.Before(until)) {
			until = deadline
		}
		_ = wait(next, until)
	}
}

// Write sends bytes, and waits while too many are under way. The error is os.ErrDeadlineExceeded, net.ErrClosed, ECONNRESET, or EPIPE
// where the peer has closed its end.
func (c *Conn) Write(b []byte) (n int, err error) {
	for {
		next := c.out.changed.next()
		now := time.Now()
		c.mu.Lock()
		closed, deadline := c.closed, c.writes
		c.mu.Unlock()
		late := time.Duration(c.network.below(int64(c.network.Latency)))
		p := c.out
		p.mu.Lock()
		switch {
		case closed:
			err = net.ErrClosed
		case p.reset:
			err = syscall.ECONNRESET
		case p.unread, p.fin:
			err = syscall.EPIPE
		case !deadline.IsZero() && !deadline.After(now):
			err = os.ErrDeadlineExceeded
		}
		room := window - p.bytes
		if err == nil && room > 0 {
			some := b[n:min(len(b), n+room)]
			if p.last = now.Add(late); len(p.chunks) > 0 && p.last.Before(p.chunks[len(p.chunks)-1].at) {
				p.last = p.chunks[len(p.chunks)-1].at
			}
			p.chunks = append(p.chunks, chunk{p.last, append([]byte(nil), some...)})
			p.bytes += len(some)
			n += len(some)
		}
		p.mu.Unlock()
		if err == nil && room > 0 {
			p.changed.happens()
		}
		if err != nil || n == len(b) {
			return n, err
		}
		_ = wait(next, deadline)
	}
}

// Close ends the connection. The peer reads what was sent, unless there was something that nobody has read here: then it is reset.
func (c *Conn) Close() error {
	if !c.close() {
		return net.ErrClosed
	}
	c.in.mu.Lock()
	unread := len(c.in.chunks) > 0
	c.in.mu.Unlock()
	c.in.set(func() { c.in.unread = true })
	c.out.set(func() { c.out.fin, c.out.reset = true, c.out.reset || unread })
	return nil
}

// Reset ends the connection at both ends. What is under way is lost.
func (c *Conn) Reset() {
	c.in.set(func() { c.in.reset, c.in.chunks, c.in.bytes = true, nil, 0 })
	c.out.set(func() { c.out.reset, c.out.chunks, c.out.bytes = true, nil, 0 })
	c.network.forget(c)
}

// AwaitPeer returns when the peer has closed its end, which it may do long after this one was reset, or after a while at most.
func (c *Conn) AwaitPeer(most time.Duration) {
	select {
	case <-c.peer.ended:
	case <-time.After(most):
	}
}

// CloseWrite ends what this end sends. It still reads.
func (c *Conn) CloseWrite() error {
	c.out.set(func() { c.out.fin = true })
	return nil
}

func (c *Conn) close() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.closed = !c.closed, true
	if first {
		close(c.ended)
		c.network.forget(c)
	}
	return first
}

func (c *Conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.reads, c.writes = t, t })
}
func (c *Conn) SetReadDeadline(t time.Time) error  { return c.setDeadlines(func() { c.reads = t }) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(func() { c.writes = t }) }

func (c *Conn) setDeadlines(set func()) error {
	c.mu.Lock()
	set()
	c.mu.Unlock()
	c.in.changed.happens()
	c.out.changed.happens()
	return nil
}
