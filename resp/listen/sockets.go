package listen

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"

	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/transport"
)

// Sockets are where clients connect.
type Sockets struct {
	cfg       *config.Config
	log       *loglimit.Logger
	inherited Inherited
	warned    string // the last of warnOfCertificate

	mu    sync.Mutex
	addrs []net.Addr
}

// New returns the sockets that the settings ask for, except for those in whose place there is an inherited one. It opens none.
func New(cfg *config.Config, log *loglimit.Logger, inherited Inherited) *Sockets {
	return &Sockets{cfg: cfg, log: log, inherited: inherited}
}

// TCPPort returns the first port of TCP; 0: there is none.
func (s *Sockets) TCPPort() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.addrs {
		if tcp, ok := a.(*net.TCPAddr); ok {
			return tcp.Port
		}
	}
	return 0
}

// Listen opens the sockets, and lowers maxclients to what the limit on open files allows. After an error, none is open. The port that the
// kernel picks for port 0 is known when Listen returns, before the first connection is served.
func (s *Sockets) Listen() ([]transport.Listener, error) {
	s.fitDescriptors()
	open, err := s.inherit()
	if err != nil {
		return nil, err
	}
	path := s.cfg.UnixSocket.Get()
	port := int(s.cfg.Port.Get())
	plain := len(s.inherited.Plain) == 0
	if plain && s.cfg.PlainTCP() {
		opened, err := s.listenHosts("--port", port)
		for tries := 1; port == 0 && errors.Is(err, syscall.EADDRINUSE) && tries < 10; tries++ {
			opened, err = s.listenHosts("--port", port)
		}
		if err != nil {
			closeAll(open)
			return nil, err
		}
		open = append(opened, open...)
	}
	if plain && path != "" {
		perm, _ := config.ParsePerm(s.cfg.UnixSocketPerm.Get()) // not set: 0, which leaves it to the umask
		ln, err := transport.ListenUnix(path, perm)
		if err != nil {
			closeAll(open)
			return nil, fmt.Errorf("--unixsocket: %w", err)
		}
		open = append(open, transport.Listener{Listener: ln})
	}
	secure, err := s.listenTLS()
	if err != nil {
		closeAll(open)
		return nil, err
	}
	open = append(open, secure...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ln := range open {
		s.addrs = append(s.addrs, ln.Addr())
	}
	return open, nil
}

// listenHosts listens on the addresses of --bind. For port 0 the kernel picks a port at the first address. Another process may
// use that port at the next address, and then Listen tries again. flag is what sets the port, for the error.
func (s *Sockets) listenHosts(flag string, port int) (open []transport.Listener, err error) {
	for _, host := range s.cfg.Bind.Get() {
		host, optional := strings.CutPrefix(host, "-")
		ln, err := transport.ListenTCP(host, port)
		switch {
		case err == nil:
			open = append(open, transport.Listener{Listener: ln})
			port = ln.Addr().(*net.TCPAddr).Port
		case optional && !errors.Is(err, syscall.EADDRINUSE):
			s.log.Debug("an optional address does not exist here", "host", host, "error", err)
		default:
			closeAll(open)
			if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
				flag = "--bind"
			}
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if len(open) == 0 {
		return nil, errors.New("listen: none of the addresses of --bind exists here")
	}
	return open, nil
}

func closeAll(listeners []transport.Listener) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// fitDescriptors lowers the bounds of connections to what the limit on open files allows, as Redis does with maxclients, and says so.
func (s *Sockets) fitDescriptors() {
	wanted, others := s.cfg.MaxClients.Get(), s.otherConnections()
	all, openFiles := transport.MostConnections(wanted+others, s.cfg.IOThreads.Get())
	if all >= wanted+others {
		return
	}
	clients, room := share(all, wanted, others)
	about := []any{"wanted", wanted, "maxclients", clients}
	for _, d := range s.cfg.Doors() {
		if room < others {
			d.MaxConnections.Put(max(d.MaxConnections.Get()*room/others, 1))
		}
		about = append(about, d.Name+"_max_connections", d.MaxConnections.Get())
	}
	s.cfg.MaxClients.Put(clients)
	s.log.Warn("maxclients lowered to what the limit on open files allows", append(about, "open_files", openFiles)...)
}

// share divides connections between clients and other doors, which leave clients half of them.
func share(all, clients, others int64) (forClients, forOthers int64) {
	forOthers = min(others, all-min(clients, all/2))
	return max(min(clients, all-forOthers), 1), forOthers
}

// otherConnections is how many connections there may be beside those of clients, at all addresses that are open.
func (s *Sockets) otherConnections() (n int64) {
	for _, d := range s.cfg.Doors() {
		n += int64(d.Addresses) * d.MaxConnections.Get()
	}
	return n
}

func (s *Sockets) mostClients(wanted int64) (most int64, openFiles uint64) {
	others := s.otherConnections()
	most, openFiles = transport.MostConnections(wanted+others, s.cfg.IOThreads.Get())
	return max(most-others, 1), openFiles
}

// manyClients is what Redis says.
var manyClients = "The operating system is not able to handle the specified number of clients, try with %d"

// MayServe returns an error for more connections than the limit on open files allows. A lower maxclients is always allowed.
func (s *Sockets) MayServe(clients int64) error {
	if most, _ := s.mostClients(clients); most < clients && clients > s.cfg.MaxClients.Get() {
		return fmt.Errorf(manyClients, most)
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

// inherit returns the sockets for connections of clients.
func (s *Sockets) inherit() (open []transport.Listener, err error) {
	for _, ln := range s.inherited.Plain {
		open = append(open, transport.Listener{Listener: ln})
	}
	if len(s.inherited.HTTP) > 0 && s.cfg.Setting("http-bind") == nil {
		return nil, errors.New("systemd passes a socket for HTTP, which this celld does not serve")
	}
	if len(s.inherited.TLS) > 0 && s.cfg.TLS.Keeper == nil {
		return nil, errors.New("systemd passes a socket for TLS, but --tls-port and its certificates are not set")
	}
	return append(open, s.secured(s.inherited.TLS...)...), nil
}
