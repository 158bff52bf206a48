//go:build linux

package resp

import (
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// epollConn is the Transport of one connection. All but the atomics belong to its loop.
type epollConn struct {
	loop    *epollLoop
	session *Session
	fd      int

	out      []byte // replies that have not been written, from sent on
	sent     int
	fresh    int // where in out this round's replies begin, while they wait for the disk
	isDirty  bool
	isUnread bool
	waiting  bool // for the socket to take more
	atEnd    bool // no event will follow: read until the end is met
	gone     bool
	peerGone bool
	napTrial uint32

	inInbox    bool // guarded by loop.mu
	added      bool // to the epoll set
	closing    atomic.Bool
	progressNS int64
}

func (c *epollConn) read() {
	if c.gone || c.isUnread {
		return
	}
	if c.loop.taken >= roundBytes && c.loop.srv.synchronous {
		c.isUnread = true
		c.loop.late = append(c.loop.late, c)
		return
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(c.fd), uintptr(address(c.loop.buf)), readSize, 0, 0, 0)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno == syscall.EINTR:
	case errno != 0 || n == 0:
		if c.isDirty { // its replies leave first, at the end of the round
			c.peerGone = true
			c.loop.ended = append(c.loop.ended, c)
			return
		}
		c.flush()
		c.close()
		return
	case c.closing.Load(): // what a connection that ends still sends is of no interest
	default:
		c.loop.taken += int(n)
		c.loop.naps.served(&c.napTrial)
		c.session.Serve(c.loop.buf[:n])
		c.lingerIfClosing()
	}
	if n == readSize || c.atEnd || errno == syscall.EINTR {
		c.isUnread = true
		c.loop.unread = append(c.loop.unread, c)
	}
}

// Send keeps replies for the end of the round, or writes them if they are many.
func (c *epollConn) Send(p []byte) int {
	if c.gone {
		return 0
	}
	if c.out == nil {
		if last := len(c.loop.free) - 1; last >= 0 {
			c.out, c.loop.free = c.loop.free[last], c.loop.free[:last]
		}
	}
	if !c.isDirty {
		c.fresh = len(c.out)
	}
	c.out = append(c.out, p...)
	if len(c.out)-c.sent >= flushAt && !c.waiting && !c.loop.srv.synchronous {
		c.flush()
	} else if !c.isDirty && (!c.waiting || c.loop.srv.synchronous) {
		c.isDirty = true
		c.loop.dirty = append(c.loop.dirty, c)
	}
	return len(c.out) - c.sent
}

// flush writes what the socket takes, and has the loop wait for it to take more if it must.
func (c *epollConn) flush() {
	for c.sent < len(c.out) {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(address(c.out[c.sent:])), uintptr(len(c.out)-c.sent), unix.MSG_NOSIGNAL, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno == syscall.EAGAIN {
			c.await(true)
			break
		}
		if errno != 0 {
			c.close()
			return
		}
		c.sent += int(n)
		if c.waiting || c.closing.Load() {
			c.progressNS = c.loop.srv.clock()
		}
	}
	if c.sent == len(c.out) {
		if c.out != nil {
			if cap(c.out) <= 2*flushAt && len(c.loop.free) < 64 {
				c.loop.free = append(c.loop.free, c.out[:0])
			}
			c.out, c.sent = nil, 0
		}
		c.await(false)
		if c.closing.Load() {
			c.close()
			return
		}
	} else if c.sent > 1<<20 {
		c.out = append(c.out[:0], c.out[c.sent:]...)
		c.sent = 0
	}
	if unsent := int64(len(c.out) - c.sent); unsent != c.session.client.unsent.Load() {
		c.session.client.unsent.Store(unsent)
	}
}

// await turns on or off that the loop hears when the socket takes more.
func (c *epollConn) await(on bool) {
	if c.waiting == on {
		return
	}
	c.waiting = on
	events := uint32(readable)
	if on {
		events |= unix.EPOLLOUT
	}
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

func (c *epollConn) Close() {
	if c.closing.CompareAndSwap(false, true) {
		c.loop.ask(c)
	}
}

func (c *epollConn) Wake() { c.loop.ask(c) }

// lingerIfClosing begins to close a connection that is to be closed, at the end of the round if its replies still wait.
func (c *epollConn) lingerIfClosing() {
	switch {
	case !c.closing.Load():
	case c.isDirty:
		c.loop.ended = append(c.loop.ended, c)
	default:
		c.linger()
	}
}

// linger closes a connection once its replies have left, or when its peer has read nothing for a while.
func (c *epollConn) linger() {
	if c.gone {
		return
	}
	unwanted := c.session.end == atOnce || c.session.client.killed.Load()
	if !unwanted {
		c.flush()
		if c.gone {
			return
		}
		unwanted = c.peerGone
	}
	if unwanted || c.loop.srv.clock()-c.progressNS > lingerNS {
		c.close()
		return
	}
	time.AfterFunc(lingerNS, c.Wake)
}

// close ends the connection here and now.
func (c *epollConn) close() {
	if c.gone {
		return
	}
	c.gone = true
	c.loop.conns[c.fd] = nil
	unix.Close(c.fd) // which takes it out of the epoll set as well
	c.out = nil
	c.loop.count.Add(-1)
	c.session.Closed()
}
