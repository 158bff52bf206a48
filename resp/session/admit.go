package session

import (
	"net"

	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/stats"
	"celld/resp/transport"
)

// fullLine is NewSession's refusal when maxclients connections are open.
const fullLine = "-" + errMaxClients + "\r\n"

// NewSession admits a connection. If the connection may not be served, it returns nil and the reply to send before closing it.
// Other sessions cannot see or close the new one until its transport calls Open.
func (srv *Service) NewSession(remote, local net.Addr) (s *Session, refusal string) {
	s = srv.newSession()
	s.client.From(remote, local, srv.Clock())
	if srv.Config.ProtectedMode.Get() && srv.Users.Default.Rights().NoPass() && !s.client.Unix && !isLoopback(remote) {
		srv.Stats.DeniedClients.Add(1)
		srv.LogRejected(remote, "protected mode")
		return nil, "-" + errProtectedMode + "\r\n"
	}
	if !srv.Clients.Admit(&s.client, srv.Config.MaxClients.Get()) {
		return nil, fullLine
	}
	srv.Stats.Connections.Add(1)
	return s, ""
}

func (srv *Service) newSession() *Session {
	s := &Session{srv: srv}
	s.bound.Bytes = &s.client.BoundBytes
	s.becomeNobody()
	return s
}

// Open makes the session visible to others, which may call Close and Wake of its transport from now on. fd is the connection's
// file descriptor, or -1.
func (s *Session) Open(conn transport.Conn, fd int) { s.srv.Clients.Open(&s.client, conn, fd) }

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// scratch is what a session needs only while it answers a batch. Sessions borrow it, so an idle connection holds none.
type scratch struct {
	call  command.Call
	mark  int   // where in its output the running command's reply begins
	endNS int64 // when the last batch ended
	args  [][]byte

	passedOn bool // the script that has just ended returned an error of a command that it called

	lane    uint8 // no other scratch in use has it, up to some
	decider *decide.Decider
	batch   *batch // nil: a waiting session has taken it
	asked   bool   // the running command has asked the limiter
	keyTx   *keyTx // the running command is its handler's
	stats   stats.Batch
	slice   slice
}

func (srv *Service) newScratch() *scratch {
	if s, ok := srv.scratches.Get().(*scratch); ok {
		return s
	}
	lane := uint8(srv.Lanes.Add(1))
	call := command.Call{Reply: command.Reply{Out: make([]byte, 0, 4<<10)}}
	return &scratch{call: call, decider: srv.NewDecider(lane), lane: lane}
}

// put takes a scratch back. It drops room for very many arguments, and a whole scratch that a big reply has grown, because the
// pool could hold them for ever.
func (srv *Service) put(s *scratch) {
	if cap(s.args) > 1024 {
		s.args = nil
	}
	if cap(s.call.Out) <= 2*flushAt {
		srv.scratches.Put(s)
	}
}
