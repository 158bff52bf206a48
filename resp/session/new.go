package session

import (
	"os"

	"celld/persistence"
	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/keys"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/execution"
	"celld/resp/gate"
	"celld/resp/latency"
	"celld/resp/loglimit"
	"celld/resp/slowlog"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
)

// Parts are what a service is made of. All are needed, except those that say what nil means.
type Parts struct {
	Config  *config.Config
	Clock   func() int64
	Log     *loglimit.Logger
	Store   *memory.Store
	Persist *persistence.Disk
	Users   *acl.File // nil: the user default alone
	Stats   *stats.Server
	Exit    func(code int) // ends the process after a fault; nil: os.Exit

	Rows func(*Service) []*command.Row // of the families that sessions do not have; nil: none
}

// Engine is a store whose keys are on Redis or Valkey. A remote.Store is one.
type Engine interface {
	store.Store
	keys.Space
}

// New returns what sessions share.
func New(p Parts) *Service {
	srv := &Service{
		Config: p.Config, Clock: p.Clock, Log: p.Log,
		keyspace:  keyspace{Store: p.Store, keys: p.Store, Port: memory.Port{Store: p.Store}, limiter: p.Store},
		disk:      disk{Persist: p.Persist, Synchronous: p.Persist.Synchronous()},
		scripting: scripting{Execution: execution.New()},
		measures:  measures{Stats: p.Stats, Decisions: decisions.NewRows(p.Store.Set), Denied: decisions.NewDenied(p.Store.Set)},
		Stopping:  stopping{exit: p.Exit},
	}
	if srv.Stopping.exit == nil {
		srv.Stopping.exit = os.Exit
	}
	srv.Later.Store, srv.Later.Clock = func() store.Leases { return srv.Port }, func() int64 { return srv.Clock() }
	srv.Later.Hurries, srv.Later.Survive = srv.Stopping.Ending.Load, srv.Survive
	srv.slowlog = slowlog.New(func() int64 { return srv.Config.SlowlogMaxLen.Get() })
	srv.latency = latency.New(func() int64 { return srv.Config.LatencyThreshold.Get() },
		func() int64 { return srv.Store.WallNS(srv.Clock()) })
	srv.Clients.OnMonitors = func(some bool) { srv.Gate.Set(gate.Monitored, some) }
	srv.Persist.OnRefusal(func(refused bool) { srv.Gate.Set(gate.Refusing, refused) })
	srv.Commands = NewTable(srv, p.Rows)
	srv.useUsers(p.Users)
	srv.deciding = srv.decides()
	srv.Config.SlowlogSlowerThan.Follow(func(us int64) { srv.Gate.Set(gate.Timed, us >= 0 && us < 1000) })
	srv.Config.MaxWaiters.Follow(func(n int64) { srv.Port.SetMaxWaiters(n) })
	return srv
}

// UseEngine makes an engine keep the keys, and decide. The store has the policies only from then on, which are those of the engine's views,
// too. Nobody may be served yet.
func (srv *Service) UseEngine(e Engine) {
	srv.space, srv.Port, srv.limiter = e, e, e
	e.SetMaxWaiters(srv.Config.MaxWaiters.Get())
	srv.deciding = srv.decides()
}
