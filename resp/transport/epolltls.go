//go:build linux

package transport

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plainSize is for all that TLS can make of one read: what it holds of an unfinished record, 18 KB at most, and the read itself.
const plainSize = readSize + 32<<10

// decrypt serves what TLS makes of what has arrived, and of what it has read ahead.
func (c *epollConn) decrypt(arrived []byte) {
	s, l := c.secure, c.loop
	if l.input.plain == nil {
		l.input.plain = make([]byte, plainSize)
	}
	if len(arrived) > 0 { // else what came with the end of the handshake
		s.below.arrived = arrived
	}
	n, err := 0, error(nil)
	for err == nil && n < plainSize {
		var more int
		more, err = s.Read(l.input.plain[n:])
		n += more
	}
	s.below.arrived = nil
	if len(s.sealed()) > 0 { // TLS itself has something to say
		c.markDirty()
	}
	if err != os.ErrDeadlineExceeded { // the peer's farewell, or what is no TLS
		s.farewell = true
		c.end |= unix.EPOLLRDHUP // no event follows
		c.readOn()
	}
	switch {
	case n == 0:
	case c.paused:
		s.behind = append(s.behind, l.input.plain[:n]...)
	default:
		c.serve(l.input.plain[:n])
	}
}

// leave closes a connection whose replies have left. A peer with TLS is told so, and what it still sends is read: see
// secure.sayFarewell. Where the session waits, it is closed at once, so that its wait ends before it is granted.
func (c *epollConn) leave() {
	if c.parting || c.serving { // more replies may follow, and then it is called again
		return
	}
	if c.secure == nil || c.paused {
		c.close()
		return
	}
	if c.sayFarewell(); unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		c.close()
		return
	}
	time.AfterFunc(refusalTime, func() { c.Close(true) })
	c.readOn()
}

// sayFarewell tells the peer that nothing follows, as far as the socket takes that at once.
func (c *epollConn) sayFarewell() {
	if c.parting {
		return
	}
	c.parting = true
	_ = c.secure.CloseWrite()
	p := c.secure.sealed()
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(address(p)), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	c.took(len(p))
}
