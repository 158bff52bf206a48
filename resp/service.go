package resp

import (
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
	"celld/resp/metrics"
	"celld/resp/script"
	"celld/resp/slowlog"
	"celld/resp/stats"
	"celld/store"
	"celld/store/memory"
)

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
	instance  instance
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
	heap      metrics.Heap
	metrics   *metrics.Registry // which renders them
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
