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
	serving  bool // in Serve, which has others served meanwhile
	waiting  bool // for the socket to take more
	atEnd    bool // no event will follow: read until the end is met
	failed   bool // while it was served, so that it is closed afterwards
	gone     bool
	napTrial uint32

	inInbox  bool // guarded by loop.mu
	added    bool // to the epoll set
	closing  atomic.Bool
	owed     int         // when the server stops: bytes that are answered before it does, if they were sent
	calm     int         // and how often in a row it was seen that there are none
	cut      atomic.Bool // closing, without what has not left
	lookNS   int64       // when one that lingers is looked at again; 0: it does not linger
	tookNS   int64       // when its peer last took something since then
	told     int         // what the session knows to be unsent
	unserved bool        // the session has more to serve before the next read
}

// read serves what has arrived. What is unserved of one read is served before the next: so a connection holds one read at
// most beside an unfinished command, the rest waits in its socket, and the end of the stream is met when all is answered.
func (c *epollConn) read() {
	if c.gone || c.isUnread || c.serving {
		return
	}
	if c.loop.taken >= roundBytes && c.loop.srv.synchronous {
		c.isUnread = true
		c.loop.late = append(c.loop.late, c)
		return
	}
	if c.unserved {
		c.serve(nil)
		c.readOn()
		return
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(c.fd), uintptr(address(c.loop.buf)), readSize, 0, 0, 0)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno == syscall.EINTR:
	case errno != 0:
		c.close()
		return
	case n == 0: // it may have closed its half only, and still read
		if !c.closing.Swap(true) {
			c.lingerIfClosing()
		}
		return
	case c.closing.Load(): // what a connection that ends still sends is of no interest
	default:
		c.owed -= int(n)
		c.loop.taken += int(n)
		c.loop.naps.served(&c.napTrial)
		c.serve(c.loop.buf[:n])
	}
	if n == readSize || c.atEnd || errno == syscall.EINTR || c.unserved {
		c.readOn()
	}
}

// serve has the session answer.
func (c *epollConn) serve(data []byte) {
	c.serving = true
	c.unserved = c.session.Serve(data)
	c.serving = false
	if c.loop.srv.synchronous {
		c.markDirty() // its decisions are confirmed, too, where it sends no replies
	}
	if c.failed {
		c.close()
		return
	}
	c.lingerIfClosing()
}

// readOn has the next round read again.
func (c *epollConn) readOn() {
	if !c.isUnread && !c.gone {
		c.isUnread = true
		c.loop.unread = append(c.loop.unread, c)
	}
}

// look does what others have asked for: to be taken in, to end, or to see what came about elsewhere.
func (c *epollConn) look() {
	switch {
	case c.gone || c.serving: // Serve has a long command: what there is, is looked at when it ends
	case !c.added:
		c.loop.add(c)
	case c.closing.Load():
		c.lingerIfClosing() // and not linger, which would send what the disk does not have yet
	default:
		if c.waiting && !c.isDirty {
			c.flush()
		}
		if c.read(); !c.gone && !c.closing.Load() { // before Serve asks whether the connection is idle
			c.serve(nil)
		}
	}
}

// committed has the round's replies tell what the disk said.
func (c *epollConn) committed() {
	c.out = append(c.out[:c.fresh], c.session.Confirm(c.out[c.fresh:], c.loop.commitErr)...)
	c.fresh = len(c.out)
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
	synchronous := c.loop.srv.synchronous
	if synchronous {
		c.markDirty() // before there is anything to confirm
	}
	c.out = append(c.out, p...)
	if synchronous {
		// it leaves when it is on the disk
	} else if len(c.out)-c.sent >= flushAt && !c.waiting {
		c.flush()
	} else if !c.waiting {
		c.markDirty()
	}
	if c.waiting { // no flush tells it before the peer reads
		c.tell()
	}
	return len(c.out) - c.sent
}

// markDirty has the end of the round confirm and write what was sent from here on.
func (c *epollConn) markDirty() {
	if !c.isDirty {
		c.isDirty, c.fresh = true, len(c.out)
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// tell has the session know how much the peer has not taken.
func (c *epollConn) tell() {
	if unsent := len(c.out) - c.sent; unsent != c.told {
		c.told = unsent
		c.session.Unsent(unsent)
	}
}

// flush writes what the socket takes, and has the loop wait for it to take more if it must.
func (c *epollConn) flush() {
	before := c.sent
	for c.sent < len(c.out) {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(address(c.out[c.sent:])), uintptr(len(c.out)-c.sent), unix.MSG_NOSIGNAL, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno == syscall.EAGAIN {
			break
		}
		if errno != 0 {
			c.close()
			return
		}
		c.sent += int(n)
	}
	if c.sent > before && c.lookNS > 0 {
		c.tookNS = c.loop.srv.clock()
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
	} else {
		if c.sent > 1<<20 {
			c.out = append(c.out[:0], c.out[c.sent:]...)
			c.sent = 0
		}
		c.await(true)
	}
	c.tell()
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
	if err := unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)}); err != nil {
		c.loop.srv.warnSeldom("cannot wait for a connection", "client", c.session.client.addr, "error", err)
		c.close()
	}
}

func (c *epollConn) Close(now bool) {
	if now {
		c.cut.Store(true)
	}
	if !c.closing.Swap(true) || now {
		c.loop.ask(c)
	}
}

func (c *epollConn) Wake() { c.loop.ask(c) }

func (c *epollConn) Meanwhile(wrote bool) { c.loop.meanwhile(c, wrote) }
func (c *epollConn) Resume()              { c.loop.resume() }

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

// linger closes a connection once its replies have left, or when its peer has taken nothing for a while.
func (c *epollConn) linger() {
	if c.gone {
		return
	}
	if c.cut.Load() {
		c.close()
		return
	}
	nowNS := c.loop.srv.clock()
	if c.lookNS == 0 { // it begins to end
		c.tookNS, c.lookNS = nowNS, nowNS
	}
	if c.flush(); c.gone {
		return
	}
	if nowNS-c.tookNS > lingerNS {
		c.close()
		return
	}
	if nowNS >= c.lookNS {
		c.lookNS = nowNS + int64(lingerLook)
		time.AfterFunc(lingerLook, c.Wake)
	}
}

// close ends the connection here and now.
func (c *epollConn) close() {
	if c.gone {
		return
	}
	if c.failed = c.serving; c.failed {
		return
	}
	c.gone = true
	c.loop.conns[c.fd] = nil
	unix.Close(c.fd) // which takes it out of the epoll set as well
	c.out = nil
	c.loop.count.Add(-1)
	c.session.Closed()
}
