package resp

import "celld/resp/session"

// What the HTTP port needs of the server, beside Check, Ready and Overview.

// CallError is the error of a call from within the process.
type CallError = session.CallError

// Texts of LogVerbose.
const (
	RefusedConnection = session.RefusedConnection
	RefusedRequest    = session.RefusedRequest
)

// LogVerbose logs, at loglevel verbose and debug, who is refused and why: see session.Service.LogVerbose.
func (srv *Server) LogVerbose(text string, about ...any) { srv.sessions.LogVerbose(text, about...) }

// WarnRefused logs, at any loglevel and once a second at most, why an HTTP request is refused that a proxy may have sent.
func (srv *Server) WarnRefused(client, why string) {
	srv.sessions.Log.WarnLimited(RefusedRequest, "client", client, "reason", why)
}

// Panicked is for the deferred functions that recover a panic.
func (srv *Server) Panicked(cause any, where string) { srv.sessions.Panicked(cause, where) }

// HTTPHandshakeFailed counts a TLS handshake of the HTTP port that failed, and logs it. why has the client's address.
func (srv *Server) HTTPHandshakeFailed(why string) {
	srv.sessions.Stats.FailedHandshakes.Add(1)
	srv.sessions.Log.WarnLimited("a TLS handshake of the HTTP port failed", "error", why)
}
