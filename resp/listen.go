package resp

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"celld/resp/config"
	"celld/resp/transport"
)

// tcpPort returns the first port of TCP; 0: there is none.
func (o *sockets) tcpPort() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.addrs {
		if tcp, ok := a.(*net.TCPAddr); ok {
			return tcp.Port
		}
	}
	return 0
}

// Listen opens the configured addresses, except for those in whose place there is an inherited socket. After an error, none is open. The
// port that the kernel picks for port 0 is known when Listen returns, before the first connection is served.
func (srv *Server) Listen() ([]transport.Listener, error) {
	srv.fitDescriptors()
	open, err := srv.inherit()
	if err != nil {
		return nil, err
	}
	path := srv.cfg.UnixSocket.Get()
	port := int(srv.cfg.Port.Get())
	plain := len(srv.sockets.inherited.Plain) == 0
	if plain && srv.cfg.PlainTCP() {
		opened, err := srv.listenHosts("--port", port)
		for tries := 1; port == 0 && errors.Is(err, syscall.EADDRINUSE) && tries < 10; tries++ {
			opened, err = srv.listenHosts("--port", port)
		}
		if err != nil {
			closeAll(open)
			return nil, err
		}
		open = append(opened, open...)
	}
	if plain && path != "" {
		perm, _ := config.ParsePerm(srv.cfg.UnixSocketPerm.Get()) // not set: 0, which leaves it to the umask
		ln, err := transport.ListenUnix(path, perm)
		if err != nil {
			closeAll(open)
			return nil, fmt.Errorf("--unixsocket: %w", err)
		}
		open = append(open, transport.Listener{Listener: ln})
	}
	secure, err := srv.listenTLS()
	if err != nil {
		closeAll(open)
		return nil, err
	}
	open = append(open, secure...)
	srv.sockets.mu.Lock()
	defer srv.sockets.mu.Unlock()
	for _, ln := range open {
		srv.sockets.addrs = append(srv.sockets.addrs, ln.Addr())
	}
	return open, nil
}

// listenHosts listens on the addresses of --bind. For port 0 the kernel picks a port at the first address. Another process may
// use that port at the next address, and then Listen tries again. flag is what sets the port, for the error.
func (srv *Server) listenHosts(flag string, port int) (open []transport.Listener, err error) {
	for _, host := range srv.cfg.Bind.Get() {
		host, optional := strings.CutPrefix(host, "-")
		ln, err := transport.ListenTCP(host, port)
		switch {
		case err == nil:
			open = append(open, transport.Listener{Listener: ln})
			port = ln.Addr().(*net.TCPAddr).Port
		case optional && !errors.Is(err, syscall.EADDRINUSE):
			srv.log.Debug("optional address is not there", "host", host, "error", err)
		default:
			closeAll(open)
			if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
				flag = "--bind"
			}
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if len(open) == 0 {
		return nil, errors.New("listen: none of the addresses of --bind is there")
	}
	return open, nil
}

func closeAll(listeners []transport.Listener) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// fitDescriptors lowers maxclients to what the limit on open files allows, as Redis does, and says so.
func (srv *Server) fitDescriptors() {
	wanted := srv.cfg.MaxClients.Get()
	if most, openFiles := srv.mostClients(wanted); most < wanted {
		srv.log.Warn("maxclients lowered to what the limit on open files allows", "wanted", wanted, "maxclients", most, "open_files", openFiles)
		srv.cfg.MaxClients.Put(most)
	}
}

func (srv *Server) mostClients(wanted int64) (most int64, openFiles uint64) {
	others := int64(0)
	if srv.cfg.HTTP.Bind.Get() != "" || len(srv.sockets.inherited.HTTP) > 0 {
		others = srv.cfg.HTTP.MaxConnections.Get()
	}
	most, openFiles = transport.MostConnections(wanted+others, srv.cfg.IOThreads.Get())
	return max(most-others, 1), openFiles
}

// mayServe returns an error for more connections than the limit on open files allows. A lower maxclients is always allowed.
func (srv *Server) mayServe(clients int64) error {
	if most, _ := srv.mostClients(clients); most < clients && clients > srv.cfg.MaxClients.Get() {
		return errors.New(formatError(errManyClients, most))
	}
	return nil
}

// AddrTexts returns the addresses for people and scripts: "127.0.0.1:6379", "unix:/run/celld.sock", "tls:127.0.0.1:6380".
func AddrTexts(listeners []transport.Listener) []string {
	var texts []string
	for _, ln := range listeners {
		text := ln.Addr().String()
		if ln.Addr().Network() == "unix" {
			text = "unix:" + text
		} else if ln.TLS != nil {
			text = "tls:" + text
		}
		texts = append(texts, text)
	}
	return texts
}

// multiplexing names the transport in INFO.
func multiplexing() string {
	if transport.HasLoops {
		return "epoll"
	}
	return "go"
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
