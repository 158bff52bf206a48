//go:build linux

package transport

import "golang.org/x/sys/unix"

// onItsWay bounds the input, in bytes, that a stopping server still answers on a connection that had input when it was told to
// stop. It is about what two sockets hold: what a peer can have sent that is not read yet.
const onItsWay = 8 << 20

// owesStep is at how many connections a loop looks between two rounds: at 10,000 it looks for 10 ms.
const owesStep = 512

// owesTo is Transport.Owes for some of the loop's connections. It runs between two rounds. Whoever has called it for all sets draining.
func (l *epollLoop) owesTo(conns []*epollConn) (owes bool) {
	for _, c := range conns {
		if c == nil {
			continue
		}
		arrived, _ := unix.IoctlGetInt(c.fd, unix.TIOCINQ)
		switch more := arrived > 0 || c.more || c.paused || c.secure.hasBehind(); {
		case !l.draining && more:
			c.owed = onItsWay
		case more:
			c.calm = 0
		case c.owed > 0:
			if c.calm++; c.calm == 2 { // at the first look the peer's kernel may not know yet that there is room
				c.owed = 0
			}
		}
		if c.full && !c.held {
			l.do(c, (*epollConn).flush) // the kernel tells of room only when a third of its buffer is free
		}
		owes = owes || c.owed > 0 && c.at() < closing || c.pending() > 0
	}
	return owes
}
