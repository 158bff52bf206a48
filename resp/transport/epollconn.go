//go:build linux

package transport

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// epollConn is a connection that an event loop carries. Only the loop uses its fields, except life and inInbox.
type epollConn struct {
	loop *epollLoop
	stream
	fd       int
	reported int // the last number given to Session.Unsent

	// These are no phases: an open or closing connection may be in several of them.
	dirty   bool // in loop.dirty
	queued  bool // in loop.queue, loop.late or loop.unread
	inInbox bool // in loop.inbox; guarded by loop.mu
	serving bool // in Serve, which may serve other connections meanwhile
	full    bool // the socket is full; epoll tells when it takes more
	parting bool // with TLS: the farewell is sent
	wrote   bool // in its last round
	held    bool // waits for a slow disk: see takeOver
	missed  bool // has been woken meanwhile
	calm    int8 // how often in a row owes has seen no input

	end uint32 // events that announced the end. No more follow, so the loop reads until it meets the end

	napTrial uint32
	owed     int   // when the server stops: at most so many bytes of input are still answered
	lookNS   int64 // when to try to write again while lingering; 0: not lingering
	tookNS   int64 // when the peer last took something, since lingering began
}

// read reads and serves what has arrived. While the session waits, it only looks for the end of the connection. It serves all of one
// read before the next. So a connection holds one read at most, beside an unfinished command; the rest waits in its socket. And it
// meets the end of the stream when all input is answered.
func (c *epollConn) read() {
	size := c.mayRead()
	if size == 0 {
		return
	}
	if data, ok := c.arrived(); ok {
		c.serve(data)
		c.readOn()
		return
	}
	if c.secure != nil && c.secure.farewell && c.at() < closing {
		c.inputEnds()
		return
	}
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(c.fd), uintptr(address(c.loop.input.sealed)), uintptr(size), 0, 0, 0)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno == syscall.EINTR:
	case errno != 0:
		c.close()
		return
	case n == 0:
		c.inputEnds()
		return
	case c.at() >= closing: // input of a connection that ends is dropped
	default:
		c.received(c.loop.input.sealed[:n])
	}
	if int(n) == size || c.end != 0 || errno == syscall.EINTR {
		c.readOn()
	}
}

// mayRead returns how many bytes may be read now.
func (c *epollConn) mayRead() (most int) {
	if c.at() == gone || c.queued || c.serving || c.held {
		return 0
	}
	most = readSize
	if c.paused {
		if c.noticeEnd(); c.at() >= closing || !c.leaves || !c.secure.listens() {
			return 0
		}
		most = mostBehind
	}
	switch {
	case !c.loop.synced:
		return most
	case c.loop.disk.putsOff(c):
		return 0
	case c.loop.taken >= roundBytes:
		c.queued = true
		c.loop.late = append(c.loop.late, c)
		return 0
	}
	return most
}

// received serves what was read.
func (c *epollConn) received(data []byte) {
	c.owed -= len(data)
	c.loop.taken += len(data)
	c.loop.naps.served(&c.napTrial)
	if c.secure != nil {
		c.decrypt(data)
	} else {
		c.serve(data)
	}
}

// inputEnds closes a connection once its replies have left. Its peer may have closed its half only, and still read.
func (c *epollConn) inputEnds() {
	if c.parting {
		c.close()
	} else if c.reach(closing) {
		c.endIfClosing()
	}
}

// serve hands data to the session, which answers.
func (c *epollConn) serve(data []byte) {
	c.serving = true
	c.more = c.session.Serve(data)
	c.serving = false
	if c.more {
		c.readOn()
	}
	if c.loop.synced {
		c.markDirty() // Confirm is called even if there are no replies
	}
	c.endIfClosing()
}

// noticeEnd ends a paused connection whose peer is gone.
func (c *epollConn) noticeEnd() {
	switch {
	case c.end&broken != 0:
		c.close()
	case c.end != 0 && c.leaves && c.reach(closing):
		c.endIfClosing()
	}
}

// readOn asks the next round to read again.
func (c *epollConn) readOn() {
	if !c.queued && c.at() < gone {
		c.queued = true
		c.loop.unread = append(c.loop.unread, c)
	}
}

// look follows the posts of other goroutines: it adds a new connection, ends it, or serves it.
func (c *epollConn) look() {
	switch p := c.at(); {
	case p == gone || c.serving: // Serve looks itself when its long command ends
	case c.held && p < cut:
		c.missed = true
	case p >= closing:
		c.endIfClosing() // not linger, which would send replies before the disk has their changes
	case p == fresh:
		c.loop.add(c)
	default:
		if c.full && !c.dirty {
			c.flush()
		}
		if c.paused {
			c.paused = false
			c.serve(nil)
			c.readOn() // events during the pause were ignored
			return
		}
		if c.read(); c.at() < closing { // read first, as Serve(nil) closes a connection that seems idle
			c.serve(nil)
		}
	}
}

// committed passes the round's replies through Confirm.
func (c *epollConn) committed() { c.confirm(c.loop.disk.err) }

// Send keeps replies for the end of the round. Many are written at once.
func (c *epollConn) Send(p []byte) int {
	if c.at() == gone {
		return 0
	}
	if c.out == nil {
		c.out = c.loop.spares.borrow()
	}
	if c.loop.synced {
		c.markDirty() // before there is anything to confirm
	}
	c.out = append(c.out, p...)
	switch {
	case c.loop.synced: // they leave after the commit
	case c.full: // they leave when the socket takes more
	case len(c.out) >= flushAt: // none of it has been sent, as the socket is not full
		c.flush()
	default:
		c.markDirty()
	}
	if c.full { // no flush tells the session before the peer reads
		c.tell()
	}
	return c.pending()
}

// markDirty asks the end of the round to confirm and write what is sent from here on.
func (c *epollConn) markDirty() {
	if !c.dirty {
		c.dirty, c.fresh = true, len(c.out)
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// tell tells the session how much the peer has not taken.
func (c *epollConn) tell() {
	if unsent := c.pending(); unsent != c.reported {
		c.reported = unsent
		c.session.Unsent(unsent)
	}
}

// flush writes what the socket takes. If something is left, the loop waits until the socket takes more.
func (c *epollConn) flush() {
	took := false
	for {
		p, err := c.next()
		if err != nil {
			c.close()
			return
		}
		if len(p) == 0 {
			break
		}
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(address(p)), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
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
		c.took(int(n))
		took = true
	}
	if took && c.lookNS > 0 {
		c.tookNS = c.loop.server.NowNS()
	}
	if c.pending() == 0 {
		c.loop.spares.giveBack(c.out)
		c.out, c.sent = nil, 0
		c.await(false)
		if c.at() >= closing {
			c.leave()
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

// await turns on or off the event that the socket takes more.
func (c *epollConn) await(on bool) {
	if c.full == on {
		return
	}
	c.full = on
	if err := c.loop.poller.await(c.fd, on); err != nil {
		c.loop.server.Warn("cannot wait for a connection", c.session, err)
		c.close()
	}
}

func (c *epollConn) Close(now bool) {
	to := closing
	if now {
		to = cut
	}
	if c.reach(to) {
		c.loop.post(c)
	}
}

// Hold keeps the socket open by a descriptor of its own.
func (c *epollConn) Hold() (release func()) {
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil { // there are no more descriptors
		return func() {}
	}
	return func() { unix.Close(fd) }
}

func (c *epollConn) Wake()                  { c.loop.post(c) }
func (c *epollConn) ServeOthers(wrote bool) { c.loop.serveOthers(c, wrote) }
func (c *epollConn) Resume()                { c.loop.resume() }
func (c *epollConn) RoundNS() int64         { return c.loop.roundNS }

// endIfClosing closes a connection whose phase says so. If replies still wait for the end of the round, it closes then.
func (c *epollConn) endIfClosing() {
	switch p := c.at(); {
	case p < closing:
	case p == cut:
		c.close()
	case c.dirty:
		c.loop.ended = append(c.loop.ended, c)
	default:
		c.linger()
	}
}

// linger closes a connection when its replies have left, or when its peer has taken nothing for lingerNS.
func (c *epollConn) linger() {
	switch c.at() {
	case cut:
		c.close()
		return
	case gone:
		return
	}
	nowNS := c.loop.server.NowNS()
	if c.lookNS == 0 { // lingering begins
		c.tookNS, c.lookNS = nowNS, nowNS
	}
	if c.flush(); c.at() == gone {
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

// close ends the connection at once, or when Serve returns.
func (c *epollConn) close() {
	if c.serving {
		c.reach(cut) // closed when Serve returns
		return
	}
	if !c.reach(gone) {
		return
	}
	if c.fd < len(c.loop.conns) && c.loop.conns[c.fd] == c { // false if it ended before it was added
		c.loop.conns[c.fd] = nil
	}
	if c.secure != nil {
		c.sayFarewell()
	}
	unix.Close(c.fd) // also removes it from the epoll set
	c.out = nil
	c.loop.count.Add(-1)
	c.session.Closed()
}
