package session

import (
	"net"
	"time"

	"celld/resp/transport"
)

// Carried is what a transport sees of the sessions.
func (srv *Service) Carried() transport.Server { return carried{srv} }

type carried struct{ srv *Service }

func (t carried) Admit(remote, local net.Addr) (s transport.Session, refusal string, full bool) {
	session, refusal := t.srv.NewSession(remote, local)
	if session == nil {
		return nil, refusal, refusal == fullLine
	}
	return session, "", false
}

func (t carried) KeepAlive() time.Duration {
	return time.Duration(t.srv.Config.TCPKeepalive.Get()) * time.Second
}

func (t carried) NowNS() int64  { return t.srv.Clock() }
func (t carried) Begin()        { t.srv.Persist.Begin() }
func (t carried) Commit() error { return t.srv.Commit() }
func (t carried) Leave()        { t.srv.Persist.Leave() }

func (t carried) Rejected(remote net.Addr) {
	t.srv.Stats.RejectedClients.Add(1)
	if remote != nil {
		t.srv.LogRejected(remote, "maxclients")
	}
}

func (t carried) Warn(text string, s transport.Session, err error) {
	t.srv.Log.WarnLimited(text, append(about(s), "error", err)...)
}

func (t carried) Panicked(cause any, where string, s transport.Session) {
	t.srv.Panic(cause, where, about(s)...)
}

func (t carried) Fatal(text string, about ...any) { t.srv.Fatal(text, about...) }

// about returns the log attributes of a session.
func about(s transport.Session) []any {
	if s, ok := s.(*Session); ok {
		return []any{"client", s.client.Addr}
	}
	return nil
}

// HandshakeFailed implements transport.Server.
func (t carried) HandshakeFailed(s transport.Session, err error) {
	t.srv.Stats.FailedHandshakes.Add(1)
	t.srv.Log.WarnLimited("a TLS handshake failed", append(about(s), "error", err)...)
}
