package resp

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"celld/persistence"
)

func cmdSave(s *Session, _ [][]byte) {
	switch err := s.srv.persist.Save(); {
	case errors.Is(err, persistence.ErrSaving):
		s.replyError(errSaving)
	case errors.Is(err, persistence.ErrInUse):
		s.replyError("ERR %s", err)
	case err != nil:
		s.replyError("ERR")
	default:
		s.replyOK()
	}
}

func cmdBgsave(s *Session, args [][]byte) {
	schedule := len(args) == 2 && bytes.EqualFold(args[1], []byte("SCHEDULE"))
	if len(args) > 1 && !schedule {
		s.replyError(errSyntax)
		return
	}
	if s.tx.running {
		s.replyPlanned(s.srv.persist.PlanSave(), statusSaveScheduled)
		return
	}
	switch err := s.srv.persist.BackgroundSave(schedule); {
	case errors.Is(err, persistence.ErrRewriting) && schedule:
		s.replyStatus(statusSaveScheduled)
	case errors.Is(err, persistence.ErrRewriting):
		s.replyError(errBgsaveRewriting)
	case errors.Is(err, persistence.ErrSaving):
		s.replyError(errSaving)
	case err != nil:
		s.replyError("ERR %s", err)
	default:
		s.replyStatus("Background saving started")
	}
}

func cmdBgrewriteaof(s *Session, _ [][]byte) {
	if s.tx.running {
		s.replyPlanned(s.srv.persist.PlanRewrite(), statusRewriteScheduled)
		return
	}
	switch err := s.srv.persist.Rewrite(); {
	case errors.Is(err, persistence.ErrSaving):
		s.replyStatus(statusRewriteScheduled)
	case errors.Is(err, persistence.ErrRewriting):
		s.replyError(errRewriting)
	case err != nil:
		s.replyError("ERR %s", err)
	default:
		s.replyStatus("Background append only file rewriting started")
	}
}

const (
	statusSaveScheduled    = "Background saving scheduled"
	statusRewriteScheduled = "Background append only file rewriting scheduled"
)

// replyPlanned answers what comes in a transaction. Redis cannot fork there, and so only schedules it; here it would read
// the store while the transaction has it half changed.
func (s *Session) replyPlanned(err error, planned string) {
	switch {
	case errors.Is(err, persistence.ErrSaving):
		s.replyError(errSaving)
	case errors.Is(err, persistence.ErrRewriting):
		s.replyError(errRewriting)
	case err != nil:
		s.replyError("ERR %s", err)
	default:
		s.replyStatus(planned)
	}
}

func cmdLastsave(s *Session, _ [][]byte) {
	s.replyInt(s.srv.store.WallNS(s.srv.persist.Status().LastSaveNS) / 1e9)
}

func infoPersistence(w *infoWriter, s *Session) {
	p := s.srv.persist
	st, load := p.Status(), p.Loading()
	flag := func(on bool) int {
		if on {
			return 1
		}
		return 0
	}
	status := func(err error) string {
		if err != nil {
			return "err"
		}
		return "ok"
	}
	seconds := func(ns int64) int64 {
		if ns < 0 {
			return -1
		}
		return ns / 1e9
	}
	since := func(on bool, beganNS int64) int64 {
		if !on {
			return -1
		}
		return (s.nowNS - beganNS) / 1e9
	}
	w.field("loading", flag(s.srv.gate.has(gateLoading)))
	w.field("async_loading", 0)
	w.field("rdb_changes_since_last_save", st.ChangesSince)
	w.field("rdb_bgsave_in_progress", flag(st.Saving))
	w.field("rdb_last_save_time", s.srv.store.WallNS(st.LastSaveNS)/1e9)
	w.field("rdb_last_bgsave_status", status(st.SaveErr))
	w.field("rdb_last_bgsave_time_sec", seconds(st.SaveTookNS))
	w.field("rdb_current_bgsave_time_sec", since(st.Saving, st.SaveBeganNS))
	w.field("rdb_saves", st.Saves)
	w.field("rdb_last_cow_size", 0) // nothing is forked
	w.field("rdb_last_load_keys_expired", st.Loaded.Expired)
	w.field("rdb_last_load_keys_loaded", st.Loaded.Keys)
	w.field("aof_enabled", flag(st.AOF))
	w.field("aof_rewrite_in_progress", flag(st.Rewriting))
	w.field("aof_rewrite_scheduled", flag(st.RewritePlanned))
	w.field("aof_last_rewrite_time_sec", seconds(st.RewriteTookNS))
	w.field("aof_current_rewrite_time_sec", since(st.Rewriting, st.RewriteBeganNS))
	w.field("aof_last_bgrewrite_status", status(st.RewriteErr))
	w.field("aof_rewrites", st.Rewrites)
	w.field("aof_last_write_status", status(st.AOFErr))
	w.field("aof_last_cow_size", 0)
	if st.AOF {
		w.field("aof_current_size", st.AOFSize)
		w.field("aof_base_size", st.AOFBaseSize)
		w.field("aof_pending_rewrite", 0)
		w.field("aof_buffer_length", st.AOFPending)
		w.field("aof_write_errors", st.AOFFailures)
		w.field("aof_pending_bio_fsync", 0)
		w.field("aof_delayed_fsync", 0)
	}
	if load.Loading {
		w.field("loading_start_time", load.BeganNS/1e9)
		w.field("loading_total_bytes", load.Total)
		w.field("loading_loaded_bytes", load.Done)
		w.field("loading_loaded_perc", fmt.Sprintf("%.2f", load.Percent()))
		w.field("loading_eta_seconds", load.SecondsLeft())
	}
}

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
		if err := srv.setPolicies(); err != nil {
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
	if err := srv.setPolicies(); err != nil { // before Start, which writes them
		return err
	}
	// Loading has doubled the heap some ten times, so the next collection may be due with whatever is allocated next, as in the
	// first BGSAVE of 10M keys. An answer took 7.8 and 7.4 ms then in two runs; since this is here 0.7 and 1.1, and 6.0 in one
	// in which the server at rest took 8.5.
	runtime.GC()
	if err := p.Start(background); err != nil {
		return err
	}
	srv.gate.set(gateLoading, false)
	return nil
}

// applier returns a function that runs a command as a client's, for the append-only file of another server.
func (srv *Server) applier() func(args [][]byte) error {
	s := &Session{srv: srv, tr: noTransport{}}
	return func(args [][]byte) error {
		s.nowNS = srv.clock()
		row := srv.commands.find(args[0])
		if row == nil || row.flags&write == 0 || row.arity > 0 && len(args) != row.arity || len(args) < -row.arity {
			return fmt.Errorf("not a command that changes limits")
		}
		s.borrow()
		defer s.giveBack()
		defer func() { s.scratch.stats = batchStats{} }() // nobody has asked
		s.out = s.out[:0]
		row.run(s, args)
		failed := len(s.out) > 0 && s.out[0] == '-'
		s.scratch.out, s.out = s.out[:0], nil
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

// What SHUTDOWN has said about a snapshot.
const (
	saveIfOn = iota
	saveAlways
	saveNever
)

// prepareShutdown notes what is to be done at the end, and takes the snapshot that is asked for at once, so that its
// failure can be told. What changes after it is in the one at the end.
func (srv *Server) prepareShutdown(save, nosave bool) (ok bool) {
	switch {
	case nosave, srv.gate.has(gateLoading): // what has been read so far is less than the file has
		srv.saveAtExit.Store(saveNever)
		return true
	case save:
		srv.saveAtExit.Store(saveAlways)
	case !srv.persist.SaveAtExit():
		return true
	}
	err := srv.persist.Save()
	if err == nil || errors.Is(err, persistence.ErrSaving) {
		return true
	}
	srv.saveAtExit.Store(saveIfOn) // it does not end now
	return false
}

// maySave takes the directory for the snapshots that CONFIG SET save asks for. Only that another process has it is an error: what
// else keeps them from being written may pass, and each tells it.
func (srv *Server) maySave(points string) error {
	if points == "" {
		return nil
	}
	if err := srv.persist.Claim(); errors.Is(err, persistence.ErrInUse) {
		return err
	}
	return nil
}

// closeFiles writes the last changes, and a snapshot where one is wanted and the last is not as good.
func (srv *Server) closeFiles() error {
	p := srv.persist
	save := srv.saveAtExit.Load() == saveAlways || srv.saveAtExit.Load() == saveIfOn && p.SaveAtExit()
	if st := p.Status(); st.ChangesSince == 0 && st.Saves > 0 && st.SaveErr == nil && p.SnapshotThere() {
		save = false
	}
	if srv.gate.has(gateLoading) {
		return nil // stopped before all was read: the files are as they were
	}
	return p.Close(save)
}
