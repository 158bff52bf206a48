package resp

import (
	"errors"
	"net"

	"celld/resp/transport"
)

// Inherited are sockets that listen already, and that another process keeps open: clients that connect while there is no celld wait there
// for the next one.
type Inherited struct {
	Plain []net.Listener // TCP and unix sockets, in place of those of --bind, --port and --unixsocket
	TLS   []net.Listener // in place of those of --tls-port
	HTTP  []net.Listener // in place of that of --http-bind
}

// inherit returns the sockets for connections of clients.
func (srv *Server) inherit() (open []transport.Listener, err error) {
	for _, ln := range srv.sockets.inherited.Plain {
		open = append(open, transport.Listener{Listener: ln})
	}
	if len(srv.sockets.inherited.TLS) > 0 && srv.cfg.TLS.Keeper == nil {
		return nil, errors.New("a socket for TLS is passed, and --tls-port with its certificates is not set")
	}
	return append(open, srv.secured(srv.sockets.inherited.TLS...)...), nil
}
