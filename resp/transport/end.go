package transport

import "net"

// Waiter is a socket that is not the operating system's, such as a simulated one.
type Waiter interface {
	// AwaitEnd returns os.ErrDeadlineExceeded at the deadline for reading. The connection has ended if it returns anything else: it is
	// broken or, with half, the peer has closed its half. It reads nothing.
	AwaitEnd(half bool) error
}

// awaitOther waits for the end of a socket that the poller does not know. One that cannot wait has ended.
func awaitOther(socket net.Conn, half bool) error {
	if w, ok := socket.(Waiter); ok {
		return w.AwaitEnd(half)
	}
	return net.ErrClosed
}
