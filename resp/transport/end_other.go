//go:build !unix

package transport

import "net"

func awaitEnd(socket net.Conn, half bool) error { return awaitOther(socket, half) }
