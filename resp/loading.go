package resp

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"celld/persistence/load"
	"celld/resp/gate"
)

// Loads says whether files are read before commands are served.
func (srv *Server) Loads() bool { return srv.sessions.Persist.On() }

// loadAll is load, whose panics are errors: nothing is served yet, and the files are as they were.
func (srv *Server) loadAll(background func(step func() (more bool))) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			srv.sessions.Log.Error("panic", "where", "loading", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("load: panic: %v", cause)
		}
	}()
	return srv.load(background)
}

// load reads what is on the disk, while every command that needs it is answered by -LOADING, and begins to write. The policies
// of their file are there for states under them, which another server's files may have, and hold whatever the files say.
func (srv *Server) load(background func(step func() (more bool))) error {
	p := srv.sessions.Persist
	var loaded load.Result
	if !p.On() {
		loaded.NotRead = p.Ignored()
	} else {
		srv.limitKeys()
		err := srv.reloads.KeepPolicies()
		if err == nil {
			loaded, err = p.Load(srv.sessions.Replay())
		}
		if err != nil {
			return err
		}
		if loaded.File != "" {
			about := []any{"files", loaded.Files, "keys", loaded.Keys, "expired", loaded.Expired,
				"took", loaded.Took.Round(time.Millisecond)}
			if len(loaded.NotRead) > 0 {
				about = append(about, "not_read", loaded.NotRead)
			}
			srv.sessions.Log.Info("loaded", about...)
		}
		if len(loaded.Others) > 0 {
			srv.sessions.Log.Warn("left out what is not a limit", "files", loaded.Files, "found", loaded.OthersText())
		}
	}
	if loaded.File == "" && len(loaded.NotRead) > 0 && srv.sessions.Port.InProcess() {
		srv.sessions.Log.Warn("there are files that are not read: --save reads a snapshot, --appendonly an append-only file",
			"not_read", loaded.NotRead)
	}
	if err := srv.reloads.KeepPolicies(); err != nil { // before Start, which writes them
		return err
	}
	srv.sessions.Port.AwaitPolicies()
	// Loading has doubled the heap some ten times, so the next collection may be due with whatever is allocated next, as in the
	// first BGSAVE of 10M keys. An answer took 7.8 and 7.4 ms then in two runs; since this is here 0.7 and 1.1, and 6.0 in one
	// in which the server at rest took 8.5.
	runtime.GC()
	if err := p.Start(background, srv.sessions.Between); err != nil {
		return err
	}
	srv.sessions.Gate.Set(gate.Loading, false)
	srv.limitKeys()
	return nil
}
