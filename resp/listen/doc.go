// Package listen opens the sockets that clients connect to. It knows no connections.
//
//	sockets := listen.New(cfg, log, listen.Inherited{})
//	listeners, err := sockets.Listen()
package listen

import (
	"net"
)

// Inherited are sockets that listen already, and that another process keeps open: clients that connect while there is no celld wait there
// for the next one.
type Inherited struct {
	Plain []net.Listener // TCP and unix sockets, in place of those of --bind, --port and --unixsocket
	TLS   []net.Listener // in place of those of --tls-port
	HTTP  []net.Listener // in place of that of --http-bind
}
