package resp

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
func (srv *Server) listenTLS() ([]transport.Listener, error) {
	if srv.cfg.TLS.Port.Get() == 0 || len(srv.sockets.inherited.TLS) > 0 {
		return nil, nil
	}
	open, err := srv.listenHosts("--tls-port", int(srv.cfg.TLS.Port.Get()))
	var listeners []net.Listener
	for _, ln := range open {
		listeners = append(listeners, ln.Listener)
	}
	return srv.secured(listeners...), err
}

// secured has the connections of listeners encrypted. They share the bound on handshakes.
func (srv *Server) secured(listeners ...net.Listener) (open []transport.Listener) {
	c := &srv.cfg.TLS
	if c.Keeper == nil {
		return nil
	}
	shared := &transport.TLS{Config: c.Keeper.Config, Most: c.MaxHandshakes.Get, Plainly: "-" + errSpeaksTLS + "\r\n"}
	for _, ln := range listeners {
		open = append(open, transport.Listener{Listener: ln, TLS: shared})
	}
	return open
}

// watchCertificates looks at the files until ctx ends.
func (srv *Server) watchCertificates(ctx context.Context) {
	ticker := time.NewTicker(certsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			srv.lookAtCertificates()
		}
	}
}

// warnOfCertificate logs once that the certificate ends soon, and once that clients refuse it. A start goes on with such a certificate:
// a new one is taken up without a restart, and --check tells before.
func (srv *Server) warnOfCertificate() {
	k, now := srv.cfg.TLS.Keeper, time.Now()
	text, about := "", []any{"file", srv.cfg.TLS.Cert.Get(), "not_after", k.NotAfter().UTC().Format(time.RFC3339)}
	if err := k.Valid(now); err != nil {
		text, about = "clients refuse the certificate", append(about, "error", err)
	} else if k.EndsSoon(now) {
		text = "the certificate ends soon"
	}
	if now := fmt.Sprint(text, about); now != srv.sockets.certWarning {
		if srv.sockets.certWarning = now; text != "" {
			srv.log.Warn(text, about...)
		}
	}
}

// lookAtCertificates takes up what the files of the certificates have now, or says once what is wrong with it.
func (srv *Server) lookAtCertificates() {
	defer srv.survive("certificates")
	k := srv.cfg.TLS.Keeper
	switch taken, err := k.Look(); {
	case err != nil:
		srv.stats.FailedReloads.Add(1)
		srv.log.Warn("new certificates are not used, the old ones stay", "error", err, "not_after", k.NotAfter().UTC().Format(time.RFC3339))
	case taken:
		srv.log.Info("new certificates are used", "not_after", k.NotAfter().UTC().Format(time.RFC3339))
	}
	srv.warnOfCertificate()
}

// HandshakeFailed implements transport.Server.
func (t transportServer) HandshakeFailed(s transport.Session, err error) {
	t.srv.stats.FailedHandshakes.Add(1)
	t.srv.log.WarnSeldom("a TLS handshake failed", append(about(s), "error", err)...)
}

// HTTPHandshakeFailed counts a TLS handshake of the HTTP port that failed, and logs it. why has the client's address.
func (srv *Server) HTTPHandshakeFailed(why string) {
	srv.stats.FailedHandshakes.Add(1)
	srv.log.WarnSeldom("a TLS handshake of the HTTP port failed", "error", why)
}

// declareListeners names the listeners as Redis 7.2 does.
func (srv *Server) declareListeners(l *metrics.List) {
	cfg, hosts := srv.cfg, ""
	for _, host := range srv.cfg.Bind.Get() {
		hosts += ",bind=" + host
	}
	tcp, path := "", cfg.UnixSocket.Get()
	if cfg.PlainTCP() {
		tcp = fmt.Sprintf("%s,port=%d", hosts, srv.sockets.tcpPort())
	}
	secure := fmt.Sprintf("%s,port=%d", hosts, cfg.TLS.Port.Get())
	if in := srv.sockets.inherited.Plain; len(in) > 0 {
		tcp, path = boundTo(in)
	}
	if in := srv.sockets.inherited.TLS; len(in) > 0 {
		secure, _ = boundTo(in)
	}
	if tcp != "" {
		l.Field("listener0", "name=tcp"+tcp)
	}
	if path != "" {
		l.Field("listener1", "name=unix,bind="+path)
	}
	if cfg.TLS.Port.Get() != 0 || len(srv.sockets.inherited.TLS) > 0 {
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
