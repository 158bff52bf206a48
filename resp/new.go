package resp

import (
	"log/slog"

	"celld/persistence"
	"celld/resp/clock"
	"celld/resp/config"
	"celld/resp/door"
	"celld/resp/listen"
	"celld/resp/loglimit"
	"celld/resp/reload"
	"celld/resp/scripts"
	"celld/resp/session"
	"celld/resp/stats"
	"celld/resp/watch"
	"celld/store"
	"celld/store/memory"
)

// Options are the parts of a Server.
type Options struct {
	Config  *config.Config
	Files   Files // what ReadFiles has read
	Store   *memory.Store
	Log     *slog.Logger // nil: nothing is logged
	Clock   func() int64 // limit time in Unix nanoseconds, which never goes back; nil: a new Clock's
	Version string       // celld's own

	Exit    func(code int) // ends the process after a fault; nil: os.Exit
	Dropped func() int64   // lines of the log that nobody has read; nil: none

	// ReadClocks is Clock.Read: the wall clock and Clock at the same instant. nil: celld does not notice when the wall clock is set.
	ReadClocks func() (wallNS, nowNS int64, ok bool)

	// Engine keeps the keys, and decides; nil: Store does. With an Engine, Store has no keys, and the Engine has Store's policies.
	Engine Engine

	Scripts func() scripts.Engine // makes what runs scripts; nil: nothing does

	Inherited listen.Inherited // the zero value: Listen opens all sockets

	Persistence *persistence.Disk // nil: NewServer makes one from Config, and does not start it
}

// Engine is a store whose keys are elsewhere. A remote.Store is one.
type Engine interface {
	session.Engine
	Close()
}

// NewServer returns a server. It does not listen yet.
func NewServer(o Options) *Server {
	srv := &Server{
		upkeep: upkeep{readClocks: o.ReadClocks},
		life:   life{stop: make(chan struct{}), aborts: make(chan struct{})},
	}
	if o.Clock == nil {
		c := clock.New()
		o.Clock, srv.upkeep.readClocks = c.NowNS, c.Read
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	parts := session.Parts{Users: o.Files.users, Rows: rowsOfServer(srv), Parts: door.Parts{
		Config: o.Config, Clock: o.Clock, Log: loglimit.New(o.Log, o.Clock), Store: o.Store, Persist: o.Persistence,
		Stats: stats.NewServer(), Exit: o.Exit,
	}, Scripts: o.Scripts}
	if o.Dropped != nil {
		parts.Stats.DroppedLines = o.Dropped
	}
	if parts.Persist == nil {
		files := o.Config.Persistence()
		files.Clock, files.Log = o.Clock, parts.Log.Logger
		parts.Persist = persistence.New(o.Store, files)
	}
	if o.Engine != nil {
		parts.Stats.Engine = func() store.Counts { return o.Engine.Facts().Counts }
	}
	srv.sessions = session.New(parts)
	srv.Door = &srv.sessions.Door
	if o.Engine != nil {
		srv.sessions.UseEngine(o.Engine)
	}
	srv.sockets = listen.New(srv.sessions.Config, srv.sessions.Log, o.Inherited)
	srv.instance = newInstance(o.Version, srv.sessions.Clock())
	srv.metrics = srv.newRegistry()
	srv.reloads = reload.Reloader{
		Config: srv.sessions.Config, Users: srv.sessions.Users, Clients: &srv.sessions.Clients,
		File: o.Files.policies, InForce: srv.sessions.Store.Set, Store: func() store.Store { return srv.sessions.Port },
		Alone: srv.sessions.BetweenScripts, Stopping: srv.sessions.Ending.Load,
	}
	srv.files = watch.Watcher{Config: srv.sessions.Config, Log: srv.sessions.Log, Seen: o.Files.seen, Survive: srv.sessions.Survive}
	srv.reloads.AddTo(&srv.files)
	srv.sessions.Saved = func(setting string) { go srv.files.Saved(setting) } // which may wait until no command runs
	srv.upkeep.keysReported.Store(srv.keysMayHold())
	srv.followSettings()
	return srv
}
