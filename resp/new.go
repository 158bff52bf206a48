package resp

import (
	"log/slog"
	"os"

	"celld/persistence"
	"celld/resp/clock"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/execution"
	"celld/resp/gate"
	"celld/resp/latency"
	"celld/resp/listen"
	"celld/resp/loglimit"
	"celld/resp/reload"
	"celld/resp/slowlog"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
	"celld/store/remote"
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

	// Engine keeps the keys, and decides; nil: Store does. With an Engine, Store has no keys, and the policies of the Engine's Options.
	Engine *remote.Store

	Inherited listen.Inherited // the zero value: Listen opens all sockets

	Persistence *persistence.Disk // nil: NewServer makes one from Config, and does not start it
}

// NewServer returns a server. It does not listen yet.
func NewServer(o Options) *Server {
	srv := &Server{
		service: service{
			cfg:       o.Config,
			clock:     o.Clock,
			keyspace:  keyspace{store: o.Store},
			disk:      disk{persist: o.Persistence},
			scripting: scripting{execution: execution.New()},
			measures:  measures{stats: stats.NewServer(), decisions: decisions.NewRows(o.Store.Set), denied: decisions.NewDenied(o.Store.Set)},
			stopping:  stopping{exit: o.Exit},
		},
		upkeep: upkeep{readClocks: o.ReadClocks},
		life:   life{stop: make(chan struct{}), aborts: make(chan struct{})},
	}
	if srv.stopping.exit == nil {
		srv.stopping.exit = os.Exit
	}
	if o.Dropped != nil {
		srv.stats.DroppedLines = o.Dropped
	}
	srv.port, srv.keys, srv.limiter = memory.Port{Store: srv.store}, srv.store, srv.store
	if srv.clock == nil {
		c := clock.New()
		srv.clock, srv.upkeep.readClocks = c.NowNS, c.Read
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	srv.later.Store, srv.later.Clock = func() store.Leases { return srv.port }, func() int64 { return srv.clock() }
	srv.later.Hurries, srv.later.Survive = srv.stopping.ending.Load, srv.survive
	srv.log = loglimit.New(o.Log, func() int64 { return srv.clock() })
	srv.sockets = listen.New(srv.cfg, srv.log, o.Inherited)
	srv.slowlog = slowlog.New(func() int64 { return srv.cfg.SlowlogMaxLen.Get() })
	srv.latency = latency.New(func() int64 { return srv.cfg.LatencyThreshold.Get() }, func() int64 { return srv.store.WallNS(srv.clock()) })
	if srv.persist == nil {
		o := srv.cfg.Persistence()
		o.Clock, o.Log = srv.clock, srv.log.Logger
		srv.persist = persistence.New(srv.store, o)
	}
	srv.synchronous = srv.persist.Synchronous()
	srv.clients.OnMonitors = func(some bool) { srv.gate.Set(gate.Monitored, some) }
	srv.persist.OnRefusal(func(refused bool) { srv.gate.Set(gate.Refusing, refused) })
	srv.instance = newInstance(o.Version, srv.clock())
	srv.commands = newCommandTable(srv)
	srv.deciding = srv.decides()
	srv.metrics = srv.newRegistry()
	srv.useUsers(o.Files.users)
	srv.reloads = reload.Reloader{
		Config: srv.cfg, Log: srv.log, Users: srv.users, Clients: &srv.clients,
		Policies: o.Files.policies, InForce: srv.store.Set, Store: func() store.Store { return srv.port },
		Alone: srv.betweenScripts, Stopping: srv.stopping.ending.Load, Failed: func() { srv.stats.FailedReloads.Add(1) }, Survive: srv.survive,
	}
	if o.Engine != nil {
		srv.useEngine(o.Engine)
		srv.stats.Engine = o.Engine.Stats()
		srv.cfg.Engine.Failure.OnSet(func(text string) {
			if modes, err := remote.ParseFailures(text); err == nil {
				o.Engine.SetFailures(modes)
			}
		})
	}
	srv.upkeep.keysTold.Store(srv.keysMayHold())
	srv.followSettings()
	return srv
}
