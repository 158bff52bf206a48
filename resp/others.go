package resp

import (
	"celld/resp/command/decide"
	"celld/resp/gate"
	"celld/resp/metrics"
	"celld/resp/reload"
	"celld/store"
	"celld/store/policy"
)

// What those need of the server who serve another protocol than RESP and HTTP.

// Verdict is what a caller was told: see session.Service.Decide.
type Verdict = decide.Verdict

// Decide decides requests to the store: see session.Service.Decide.
func (srv *Server) Decide(requests []store.TakeRequest, verdict func(i int) Verdict) error {
	return srv.sessions.Decide(requests, verdict)
}

// Waits reports that Decide may wait, for an engine or the disk.
func (srv *Server) Waits() bool { return srv.sessions.Waits() }

// Policy returns the policy of a name, or that to which it falls back; nil: there is none.
func (srv *Server) Policy(name string) *policy.Policy { return srv.sessions.Store.Policy([]byte(name)) }

// Loading reports that the server reads its files, and refuses calls until then.
func (srv *Server) Loading() bool { return srv.sessions.Gate.Has(gate.Loading) }

// OnMetrics is told of metrics beside the server's own. Call it before Serve.
func (srv *Server) OnMetrics(declare func(*metrics.List)) { srv.others = append(srv.others, declare) }

// OnReload is told how to read files of others again: see reload.Other. Call it before Serve.
func (srv *Server) OnReload(other reload.Other) {
	srv.reloads.Others = append(srv.reloads.Others, other)
}

// Survive is deferred around what may fail without harm to anything else.
func (srv *Server) Survive(where string) {
	if cause := recover(); cause != nil {
		srv.sessions.Panicked(cause, where)
	}
}
