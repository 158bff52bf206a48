package session

import (
	"fmt"

	"celld/resp/command/spec"
	"celld/resp/stats"
)

// Applier returns a function that runs a command as a client's, for the append-only file of another server.
func (srv *Service) Applier() func(args [][]byte) error {
	s := srv.newSession()
	s.tx.running = true // so the store is asked
	s.client.Conn = noTransport{}
	return func(args [][]byte) error {
		s.nowNS = srv.Clock()
		row := srv.Commands.Find(args[0])
		if row == nil || row.Flags&spec.Write == 0 || row.ArityError(len(args)) != "" {
			return fmt.Errorf("not a command that changes limits")
		}
		s.borrow()
		defer s.giveBack()
		defer func() { s.scratch.stats = stats.Batch{} }() // nobody has asked
		s.call.Out = s.call.Out[:0]
		inFlight{s, row, args}.invoke()
		failed := len(s.call.Out) > 0 && s.call.Out[0] == '-'
		s.call.Out = s.call.Out[:0]
		if failed {
			return fmt.Errorf("refused")
		}
		return nil
	}
}

// noTransport is the other end of a session that nobody reads.
type noTransport struct{}

func (noTransport) Send([]byte) int  { return 0 }
func (noTransport) Close(bool)       {}
func (noTransport) Wake()            {}
func (noTransport) Pause(bool)       {}
func (noTransport) ServeOthers(bool) {}
func (noTransport) Resume()          {}
func (noTransport) RoundNS() int64   { return 0 }
