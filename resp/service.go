package resp

import (
	"os"
	"sync"
	"sync/atomic"

	"celld/persistence"
	"celld/resp/acl"
	"celld/resp/bound"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/keys"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/execution"
	"celld/resp/gate"
	"celld/resp/latency"
	"celld/resp/loglimit"
	"celld/resp/script"
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
	Engine  Engine // keeps the keys, and decides; nil: Store does. Else Store has the policies only, which are those of the engine's views, too
	Persist *persistence.Disk
	Users   *acl.File // nil: the user default alone
	Stats   *stats.Server
	Exit    func(code int) // ends the process after a fault; nil: os.Exit

	Rows func(*service) []*command.Row // of the families that sessions do not have; nil: none
}

// Engine is a store whose keys are on Redis or Valkey. A remote.Store is one.
type Engine interface {
	store.Store
	keys.Space
}

// newService returns what sessions share.
func newService(p Parts) *service {
	srv := &service{
		cfg: p.Config, clock: p.Clock, log: p.Log,
		keyspace:  keyspace{store: p.Store, keys: p.Store, port: memory.Port{Store: p.Store}, limiter: p.Store},
		disk:      disk{persist: p.Persist, synchronous: p.Persist.Synchronous()},
		scripting: scripting{execution: execution.New()},
		measures:  measures{stats: p.Stats, decisions: decisions.NewRows(p.Store.Set), denied: decisions.NewDenied(p.Store.Set)},
		stopping:  stopping{exit: p.Exit},
	}
	if srv.stopping.exit == nil {
		srv.stopping.exit = os.Exit
	}
	srv.later.Store, srv.later.Clock = func() store.Leases { return srv.port }, func() int64 { return srv.clock() }
	srv.later.Hurries, srv.later.Survive = srv.stopping.ending.Load, srv.survive
	srv.slowlog = slowlog.New(func() int64 { return srv.cfg.SlowlogMaxLen.Get() })
	srv.latency = latency.New(func() int64 { return srv.cfg.LatencyThreshold.Get() }, func() int64 { return srv.store.WallNS(srv.clock()) })
	srv.clients.OnMonitors = func(some bool) { srv.gate.Set(gate.Monitored, some) }
	srv.persist.OnRefusal(func(refused bool) { srv.gate.Set(gate.Refusing, refused) })
	srv.commands = NewTable(srv, p.Rows)
	srv.useUsers(p.Users)
	srv.deciding = srv.decides()
	if p.Engine != nil {
		srv.useEngine(p.Engine)
	}
	srv.cfg.SlowlogSlowerThan.Follow(func(us int64) { srv.gate.Set(gate.Timed, us >= 0 && us < 1000) })
	srv.cfg.MaxWaiters.Follow(func(n int64) { srv.port.SetMaxWaiters(n) })
	return srv
}

// useEngine makes an engine keep the keys.
func (srv *service) useEngine(e Engine) {
	srv.space, srv.port, srv.limiter = e, e, e
	srv.deciding = srv.decides()
}

// service is what all sessions share.
type service struct {
	cfg      *config.Config
	gate     gate.Server // every call reads it, so it shares a cache line with fields that are hardly ever written
	clock    func() int64
	log      *loglimit.Logger
	commands *command.Table
	keyspace
	disk
	scripting
	accounts
	measures
	clients   client.List
	scratches scratchPool // of all sessions
	stopping  stopping
}

// stopping is what sessions know of the server's end.
type stopping struct {
	refusing atomic.Bool    // no call may wait any more
	ending   atomic.Bool    // a running script must end
	exit     func(code int) // ends the process after a fault
}

// scratchPool is where sessions that answer nothing leave their scratches.
type scratchPool struct {
	pool sync.Pool
	made atomic.Uint32
}

// keyspace is what keeps the keys and decides.
type keyspace struct {
	store    *memory.Store // of the process, which has the policies, too
	keys     store.Keys    // of the process: none where an engine keeps them
	port     store.Store   // the store as all is asked of it
	space    keys.Space    // all keys of an engine; nil: the keys are in the store
	limiter  store.Limiter
	deciding decide.Server
	visiting atomic.Int64 // bytes of visits to the engine
	listing  sync.Mutex   // one long list is made at a time
	later    bound.Releaser
}

// accounts are the users, and what they were refused.
type accounts struct {
	users  *acl.Users
	aclLog acl.Log
}

// measures are what the server measures of itself.
type measures struct {
	stats     *stats.Server
	decisions *decisions.Rows
	denied    *decisions.Denied
	slowlog   *slowlog.Log
	latency   *latency.Monitor
}

// disk is where the keys are kept.
type disk struct {
	persist     *persistence.Disk
	synchronous bool // replies wait for the disk
}

// scripting is how commands run beside each other, and scripts alone.
type scripting struct {
	execution execution.Lock
	scripts   *script.Engine // used only while execution is held alone
	running   running
}
