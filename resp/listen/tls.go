package listen

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"celld/resp/metrics"
	"celld/resp/transport"
)

// listenTLS listens on the addresses of --bind with TLS, if there is a port for it and no inherited socket.
func (s *Sockets) listenTLS() ([]transport.Listener, error) {
	if s.cfg.TLS.Port.Get() == 0 || len(s.inherited.TLS) > 0 {
		return nil, nil
	}
	open, err := s.listenHosts("--tls-port", int(s.cfg.TLS.Port.Get()))
	var listeners []net.Listener
	for _, ln := range open {
		listeners = append(listeners, ln.Listener)
	}
	return s.secured(listeners...), err
}

// secured adds TLS to listeners. Their connections share the bound on handshakes.
func (s *Sockets) secured(listeners ...net.Listener) (open []transport.Listener) {
	c := &s.cfg.TLS
	if c.Keeper == nil {
		return nil
	}
	shared := &transport.TLS{Config: c.Keeper.Config, Most: c.MaxHandshakes.Get, Plainly: "-ERR this port takes TLS only\r\n"}
	for _, ln := range listeners {
		open = append(open, transport.Listener{Listener: ln, TLS: shared})
	}
	return open
}

// WarnOfCertificate logs once that the certificate ends soon, and once that clients refuse it. A start goes on with such a certificate:
// a new one is taken up without a restart, and --check tells before.
func (s *Sockets) WarnOfCertificate() {
	k, now := s.cfg.TLS.Keeper, time.Now()
	if k == nil {
		return
	}
	text, about := "", []any{"file", s.cfg.TLS.Cert.Get(), "not_after", k.NotAfter().UTC().Format(time.RFC3339)}
	if err := k.Valid(now); err != nil {
		text, about = "clients refuse the certificate", append(about, "error", err)
	} else if k.EndsSoon(now) {
		text = "the certificate ends soon"
	}
	if now := fmt.Sprint(text, about); now != s.warned {
		if s.warned = now; text != "" {
			s.log.Warn(text, about...)
		}
	}
}

// Declare names the listeners as Redis 7.2 does.
func (s *Sockets) Declare(l *metrics.List) {
	cfg, hosts := s.cfg, ""
	for _, host := range s.cfg.Bind.Get() {
		hosts += ",bind=" + host
	}
	tcp, path := "", cfg.UnixSocket.Get()
	if cfg.PlainTCP() {
		tcp = fmt.Sprintf("%s,port=%d", hosts, s.TCPPort())
	}
	secure := fmt.Sprintf("%s,port=%d", hosts, cfg.TLS.Port.Get())
	if in := s.inherited.Plain; len(in) > 0 {
		tcp, path = boundTo(in)
	}
	if in := s.inherited.TLS; len(in) > 0 {
		secure, _ = boundTo(in)
	}
	if tcp != "" {
		l.Field("listener0", "name=tcp"+tcp)
	}
	if path != "" {
		l.Field("listener1", "name=unix,bind="+path)
	}
	if cfg.TLS.Port.Get() != 0 || len(s.inherited.TLS) > 0 {
		l.Field("listener2", "name=tls"+secure)
	}
}

// boundTo describes inherited sockets: the addresses of those on TCP with the first one's port, and the path of a unix socket.
func boundTo(listeners []net.Listener) (tcp, path string) {
	port := 0
	for _, ln := range listeners {
		if addr, ok := ln.Addr().(*net.TCPAddr); ok {
			tcp += ",bind=" + addr.IP.String()
			port = cmp.Or(port, addr.Port)
		} else {
			path = ln.Addr().String()
		}
	}
	if tcp != "" {
		tcp += fmt.Sprintf(",port=%d", port)
	}
	return tcp, path
}
