//go:build !unix

package transport

import "net"

// hasInput knows nothing of sockets here.
func hasInput(any) bool { return false }

func awaitEnd(socket net.Conn, half bool) error { return awaitOther(socket, half) }
