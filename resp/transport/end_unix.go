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
