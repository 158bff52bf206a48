package session

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

// Service is what all sessions share.
type Service struct {
	Config   *config.Config
	Gate     gate.Server // every call reads it, so it shares a cache line with fields that are hardly ever written
	Clock    func() int64
	Log      *loglimit.Logger
	Commands *command.Table
	keyspace
	disk
	scripting
	accounts
	measures
	Clients   client.List
	within    waitingWithin
	scratches scratchPool // of all sessions
	Stopping  stopping
}

// stopping is what sessions know of the server's end.
type stopping struct {
	refusing atomic.Bool    // no call may wait any more
	Ending   atomic.Bool    // a running script must end
	exit     func(code int) // ends the process after a fault
}

// scratchPool is where sessions that answer nothing leave their scratches.
type scratchPool struct {
	pool sync.Pool
	made atomic.Uint32
}

// keyspace is what keeps the keys and decides.
type keyspace struct {
	Store    *memory.Store // of the process, which has the policies, too
	keys     store.Keys    // of the process: none where an engine keeps them
	Port     store.Store   // the store as all is asked of it
	space    keys.Space    // all keys of an engine; nil: the keys are in the store
	limiter  store.Limiter
	deciding decide.Server
	txBytes  atomic.Int64 // bytes of key transactions to the engine
	listing  sync.Mutex   // one long list is made at a time
	Later    bound.Releaser
}

// accounts are the users, and what they were refused.
type accounts struct {
	Users  *acl.Users
	aclLog acl.Log
}

// measures are what the server measures of itself.
type measures struct {
	Stats     *stats.Server
	Decisions *decisions.Rows
	Denied    *decisions.Denied
	slowlog   *slowlog.Log
	latency   *latency.Monitor
	Heap      metrics.Heap
}

// disk is where the keys are kept.
type disk struct {
	Persist     *persistence.Disk
	Synchronous bool // replies wait for the disk
}

// scripting is how commands run beside each other, and scripts alone.
type scripting struct {
	Execution execution.Lock
	scripts   *script.Engine // used only while execution is held alone
	running   running
}

// running is the script that runs, as other connections know it. Its zero value is none.
type running struct {
	atomic.Pointer[runningScript]
}

// by reports whether a client's script runs.
func (r *running) by(c *client.Client) bool {
	script := r.Load()
	return script != nil && script.client == c
}

// runningScript is what may be asked of a script from outside.
type runningScript struct {
	client  *client.Client // whose it is
	startNS int64
	fate    atomic.Int32
}

// The fate of a script is set once. One that has written cannot be killed, and a killed one cannot write.
const (
	hasWritten int32 = 1 + iota
	isKilled
)
