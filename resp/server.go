package resp

import (
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"celld/persistence"
	"celld/resp/acl"
	"celld/resp/clock"
	"celld/resp/command"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/latency"
	"celld/resp/loglimit"
	"celld/resp/metrics"
	"celld/resp/script"
	"celld/resp/slowlog"
	"celld/resp/stats"
	"celld/resp/transport"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// RedisVersion is the version of Redis whose replies celld gives. Clients that ask for a version get this one.
const RedisVersion = "7.2.4"

// LevelVerbose is between slog's debug and info, as redis.conf's verbose is between debug and notice. Lines that a hostile peer
// could write without end have this level.
const LevelVerbose = slog.LevelDebug + 2

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

	// Limiter decides; nil: Store does. Another Limiter may answer later. MULTI and scripts cannot wait, so they refuse the commands
	// that ask it.
	Limiter store.Limiter

	// Engine keeps the keys, and decides in place of Limiter; nil: Store keeps them. Store then has no keys, and the policies of the
	// Engine's Options.
	Engine *remote.Store

	Inherited Inherited // the zero value: Listen opens all sockets

	Persistence *persistence.Disk // nil: NewServer makes one from Config, and does not start it
}

// Server is what all sessions share. It does no network I/O itself: Listen and Serve do, and tests call sessions directly.
type Server struct {
	cfg      *config.Config
	gate     serverGate // every call reads it, so it shares a cache line with fields that are hardly ever written
	clock    func() int64
	log      *loglimit.Logger
	commands *command.Table
	keyspace
	disk
	scripting
	accounts
	measures
	instance instance
	clients  clientList
	sockets  sockets
	upkeep   upkeep
	life     life
}

// keyspace is what keeps the keys and decides.
type keyspace struct {
	store        *memory.Store   // of the process, which has the policies, too
	policies     []policy.Policy // of --policies
	keys         store.Keys      // of the process: none where an engine keeps them
	port         store.Store     // the store as all is asked of it
	engine       engine          // nil: the keys are in the store
	limiter      store.Limiter
	answersLater bool         // the limiter is not the store
	visiting     atomic.Int64 // bytes of visits to the engine
	listing      sync.Mutex   // one long list is made at a time
	later        laterReleases
}

// accounts are the users, and what they were refused.
type accounts struct {
	users       *acl.Users
	aclLog      acl.Log
	savingUsers sync.Mutex
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
	execution execution
	scripts   *script.Engine            // used only while execution is held alone
	running   atomic.Pointer[scriptRun] // nil: no script runs
}

// upkeep is the state of the regular work.
type upkeep struct {
	readClocks  func() (wallNS, nowNS int64, ok bool)
	purging     atomic.Bool  // MEMORY PURGE is running
	sweeping    atomic.Bool  // expired keys are being removed
	shrinking   atomic.Bool  // keys are being evicted, as there may be fewer than before
	clientsHold atomic.Int64 // bytes of clients' buffers, as last passed to onMemory
	keysTold    atomic.Int64 // those of keys, as last passed to it
}

// NewServer returns a server. It does not listen yet.
func NewServer(o Options) *Server {
	srv := &Server{
		cfg:       o.Config,
		clock:     o.Clock,
		keyspace:  keyspace{store: o.Store, policies: o.Files.policies, limiter: o.Limiter},
		disk:      disk{persist: o.Persistence},
		scripting: scripting{execution: newExecution()},
		measures:  measures{stats: stats.NewServer(), decisions: decisions.NewRows(o.Store.Set), denied: decisions.NewDenied(o.Store.Set)},
		clients:   clientList{sessions: map[int64]*Session{}},
		sockets:   sockets{inherited: o.Inherited},
		upkeep:    upkeep{readClocks: o.ReadClocks},
		life:      life{stop: make(chan struct{}), aborts: make(chan struct{}), exit: o.Exit},
	}
	if srv.life.exit == nil {
		srv.life.exit = os.Exit
	}
	if o.Dropped != nil {
		srv.stats.DroppedLines = o.Dropped
	}
	if srv.limiter == nil {
		srv.limiter = srv.store
	}
	srv.port, srv.keys = memory.Port{Store: srv.store}, srv.store
	srv.answersLater = srv.limiter != store.Limiter(srv.store)
	if srv.clock == nil {
		c := clock.New()
		srv.clock, srv.upkeep.readClocks = c.NowNS, c.Read
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	srv.log = loglimit.New(o.Log, func() int64 { return srv.clock() })
	srv.slowlog = slowlog.New(func() int64 { return srv.cfg.SlowlogMaxLen.Get() })
	srv.latency = latency.New(func() int64 { return srv.cfg.LatencyThreshold.Get() }, srv.store.WallNS)
	if srv.persist == nil {
		o := srv.cfg.Persistence()
		o.Clock, o.Log = srv.clock, srv.log.Logger
		srv.persist = persistence.New(srv.store, o)
	}
	srv.synchronous = srv.persist.Synchronous()
	srv.persist.OnRefusal(func(refused bool) { srv.gate.set(gateRefusing, refused) })
	srv.instance = newInstance(o.Version, srv.clock())
	srv.commands = newCommandTable(srv)
	srv.metrics = srv.newRegistry()
	srv.useUsers(o.Files.users)
	if o.Engine != nil {
		srv.useEngine(remote.Port{Store: o.Engine})
		srv.stats.Engine = o.Engine.Stats()
	}
	srv.upkeep.keysTold.Store(srv.keysMayHold())
	srv.followSettings(o.Engine)
	return srv
}

// Peer is the two addresses of a connection.
type Peer struct {
	Remote, Local net.Addr
}

// fullLine is NewSession's refusal when maxclients connections are open.
const fullLine = "-" + errMaxClients + "\r\n"

// NewSession admits a connection. If the connection may not be served, it returns nil and the reply to send before closing it.
// Other sessions cannot see or close the new one until its transport calls Open.
func (srv *Server) NewSession(p Peer) (s *Session, refusal string) {
	s = &Session{srv: srv}
	c := &s.client
	c.addr, c.localAddr = addrText(p.Remote), addrText(p.Local)
	_, c.unix = p.Local.(*net.UnixAddr)
	if c.unix {
		c.addr, c.localAddr = unixText(p.Local), unixText(p.Local)
	}
	c.localAddr = srv.clients.intern(c.localAddr)
	c.loopback = c.unix || isLoopback(p.Remote)
	if srv.cfg.ProtectedMode.Get() && srv.users.Default.Rights().NoPass() && !c.loopback {
		srv.stats.DeniedClients.Add(1)
		srv.tellRejected(p.Remote, "protected mode")
		return nil, "-" + errProtectedMode + "\r\n"
	}
	s.becomeNobody()
	c.bornNS = srv.clock()
	c.lastNS.Store(c.bornNS)
	c.fd = -1
	c.txLen.Store(-1)

	if c.id = srv.clients.admit(srv.cfg.MaxClients.Get()); c.id == 0 {
		return nil, fullLine
	}
	srv.stats.Connections.Add(1)
	return s, ""
}

// Open makes the session visible to others, which may call Close and Wake of its transport from now on. fd is the connection's
// file descriptor, or -1.
func (s *Session) Open(tr transport.Conn, fd int) {
	s.tr = tr
	s.client.fd = int32(fd)
	s.srv.clients.open(s)
}

func addrText(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// unixText is a unix socket's address as Redis writes it: the path of the listener, and port 0.
func unixText(a net.Addr) string { return a.String() + ":0" }

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// scratch is what a session needs only while it answers a batch. Sessions borrow it, so an idle connection holds none.
type scratch struct {
	call  command.Call
	mark  int   // where in its output the running command's reply begins
	endNS int64 // when the last batch ended
	args  [][]byte

	passedOn bool // the script that has just ended returned an error of a command that it called

	lane     uint8  // no other scratch in use has it, up to some
	batch    *batch // nil: a waiting session has taken it
	asked    bool   // the running command has asked the limiter
	visit    *visit // the running command is its handler's
	single   form   // of the running command
	forms    *forms
	literals literalCache
	stats    stats.Batch
	slice    slice
	decided  decisions.Batch
	denied   []decisions.Denial
}

type scratchPool struct {
	pool sync.Pool
	made atomic.Uint32
}

func (p *scratchPool) get() *scratch {
	if s, ok := p.pool.Get().(*scratch); ok {
		return s
	}
	return &scratch{call: command.Call{Reply: command.Reply{Out: make([]byte, 0, 4<<10)}}, forms: newForms(), lane: uint8(p.made.Add(1))}
}

// put takes a scratch back. It drops room for very many arguments, and a whole scratch that a big reply has grown, because the
// pool could hold them for ever.
func (p *scratchPool) put(s *scratch) {
	if cap(s.args) > 1024 {
		s.args = nil
	}
	if cap(s.call.Out) <= 2*flushAt {
		p.pool.Put(s)
	}
}
