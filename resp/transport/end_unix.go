//go:build unix

package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitEnd waits as sockets do: Go's poller also wakes it for input, and then it only checks for the end of the connection.
func awaitEnd(socket net.Conn, half bool) error {
	of, ok := socket.(syscall.Conn)
	if !ok {
		return awaitOther(socket, half)
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool { return hasEnded(fd, half) })
}

// hasInput reports whether a socket has input, or has ended, so that a read would not wait, or a listener has a connection.
func hasInput(socket any) (has bool) {
	if of, ok := socket.(syscall.Conn); ok {
		if raw, err := of.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { has = polled(fd, unix.POLLIN) })
		}
	}
	return has
}

// hasEnded reports whether a connection is broken or, with half, its peer has closed its half. Systems other than Linux
// do not tell that while there is something to read.
func hasEnded(fd uintptr, half bool) bool {
	events := int16(0)
	if half {
		events = pollHalf
	}
	return polled(fd, events)
}

// polled reports whether one of these events, an error or an end is there.
func polled(fd uintptr, events int16) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		if _, err := unix.Poll(poll, 0); err != unix.EINTR {
			return poll[0].Revents != 0
		}
	}
}
