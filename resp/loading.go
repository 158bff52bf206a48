package resp

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"celld/resp/command"
	"celld/resp/gate"
	"celld/resp/stats"
)

// Loads says whether files are read before commands are served.
func (srv *Server) Loads() bool { return srv.persist.On() }

// loadAll is load, whose panics are errors: nothing is served yet, and the files are as they were.
func (srv *Server) loadAll(background func(step func() (more bool))) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			srv.log.Error("panic", "where", "loading", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("load: panic: %v", cause)
		}
	}()
	return srv.load(background)
}

// load reads what is on the disk, while every command that needs it is answered by -LOADING, and begins to write. The policies
// of their file are there for states under them, which another server's files may have, and hold whatever the files say.
func (srv *Server) load(background func(step func() (more bool))) error {
	p := srv.persist
	if p.On() {
		if err := srv.reloads.KeepPolicies(); err != nil {
			return err
		}
		loaded, err := p.Load(srv.applier())
		if err != nil {
			return err
		}
		if loaded.File != "" {
			about := []any{"files", loaded.Files, "keys", loaded.Keys, "expired", loaded.Expired, "took", loaded.Took.Round(time.Millisecond)}
			if len(loaded.NotRead) > 0 {
				about = append(about, "not_read", loaded.NotRead)
			}
			srv.log.Info("loaded", about...)
		}
		if len(loaded.Others) > 0 {
			srv.log.Warn("left out what is no limit", "files", loaded.Files, "found", loaded.OthersText())
		}
	}
	if err := srv.reloads.KeepPolicies(); err != nil { // before Start, which writes them
		return err
	}
	srv.port.AwaitPolicies()
	// Loading has doubled the heap some ten times, so the next collection may be due with whatever is allocated next, as in the
	// first BGSAVE of 10M keys. An answer took 7.8 and 7.4 ms then in two runs; since this is here 0.7 and 1.1, and 6.0 in one
	// in which the server at rest took 8.5.
	runtime.GC()
	if err := p.Start(background); err != nil {
		return err
	}
	srv.gate.Set(gate.Loading, false)
	return nil
}

// applier returns a function that runs a command as a client's, for the append-only file of another server.
func (srv *Server) applier() func(args [][]byte) error {
	s := srv.newSession()
	s.tx.running = true // so the store is asked
	s.client.Conn = noTransport{}
	return func(args [][]byte) error {
		s.nowNS = srv.clock()
		row := srv.commands.Find(args[0])
		if row == nil || row.Flags&command.Write == 0 || row.Arity > 0 && len(args) != row.Arity || len(args) < -row.Arity {
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

func (noTransport) Send([]byte) int { return 0 }
func (noTransport) Close(bool)      {}
func (noTransport) Wake()           {}
func (noTransport) Pause(bool)      {}
func (noTransport) Meanwhile(bool)  {}
func (noTransport) Resume()         {}
func (noTransport) RoundNS() int64  { return 0 }
