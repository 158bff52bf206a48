package listen

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"celld/resp/metrics"
	"celld/resp/transport"
)

// certsEvery is the time between two looks at the certificates' files. A change is taken up, or refused, after two looks at most.
const certsEvery = 2 * time.Second

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

// WatchCertificates takes up what the files of the certificates have, until ctx ends, and warns of certificates that end soon. It calls
// failed for new ones that are not used, and defers survive, which recovers a panic.
func (s *Sockets) WatchCertificates(ctx context.Context, failed func(), survive func(where string, about ...any)) {
	if s.cfg.TLS.Keeper != nil {
		s.warnOfCertificate()
		go s.watch(ctx, failed, survive) // nobody waits for it: files of a network may hang
	}
}

func (s *Sockets) watch(ctx context.Context, failed func(), survive func(where string, about ...any)) {
	ticker := time.NewTicker(certsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.lookAtCertificates(failed, survive)
		}
	}
}

// warnOfCertificate logs once that the certificate ends soon, and once that clients refuse it. A start goes on with such a certificate:
// a new one is taken up without a restart, and --check tells before.
func (s *Sockets) warnOfCertificate() {
	k, now := s.cfg.TLS.Keeper, time.Now()
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

// lookAtCertificates takes up what the files of the certificates have now, or says once what is wrong with it.
func (s *Sockets) lookAtCertificates(failed func(), survive func(where string, about ...any)) {
	defer survive("certificates")
	k := s.cfg.TLS.Keeper
	switch taken, err := k.Look(); {
	case err != nil:
		failed()
		s.log.Warn("new certificates are not used, the old ones stay", "error", err, "not_after", k.NotAfter().UTC().Format(time.RFC3339))
	case taken:
		s.log.Info("new certificates are used", "not_after", k.NotAfter().UTC().Format(time.RFC3339))
	}
	s.warnOfCertificate()
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
