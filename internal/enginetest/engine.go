package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is how an Engine's nodes belong together.
type Kind int

const (
	Alone    Kind = iota // one master
	Cluster              // several masters, which share the slots
	Sentinel             // one master, which Sentinels watch
)

// MasterName is the name of the Sentinels' master.
const MasterName = "celld"

// Fsync is what a node's files hold when it is killed.
type Fsync int

const (
	NoFiles     Fsync = iota // nothing
	EachWrite                // all that it has answered
	EachSecond               // what is older than a second
	fsyncSecond = time.Second
)

// Options say what an Engine is. Rand must be set.
type Options struct {
	Kind      Kind
	Valkey    bool // Valkey 8.1; else Redis 7.0
	Masters   int  // of a Cluster; 0: 3
	Replicas  int  // of each master
	Sentinels int  // 0: 3
	Subnet    int  // nodes are 10.0.<Subnet>.<i>: Engines of one world need different ones
	Password  string
	Rand      *rand.Rand

	Clock func(node int) int64 // Unix ns, by the order of Nodes; nil: time.Now
	Lag   time.Duration        // after which a replica has a write
	Files Fsync

	MaxMemory int64 // bytes, as this package counts them; 0: no limit
	Evicts    bool  // any key goes when the memory is full; else writes are refused

	// NodeTimeout is after how long others replace a master that was killed, paused or isolated, or mark it as failed if it has no replica.
	// An isolated master of a Cluster serves nothing from then on. 0: nobody notices, and only Failover replaces a master.
	NodeTimeout time.Duration
	Notice      time.Duration // nodes and Sentinels learn of such a change within this time, at random; 0: at once
	PartOK      bool          // a Cluster that lacks a master serves the other slots: cluster-require-full-coverage no
}

// Engine is the nodes of one fleet. Its methods may be called by many goroutines at once.
type Engine struct {
	options   Options
	mu        sync.Mutex
	commands  map[string]*command
	nodes     []*Node // which keep keys: first all masters
	sentinels []*Node
	fleet     *topology // as it is; each Node has its own view
	moves     map[int]*Move
	ids       int64 // of connections
	runs      int64 // of nodes
	unknown   []string
}

// ErrDown is the error of Serve and Dial for an address where nobody listens.
var ErrDown = errors.New("connection refused")

// New returns an Engine whose nodes all run.
func New(o Options) *Engine {
	if o.Kind != Cluster {
		o.Masters = 1
	}
	o.Masters, o.Sentinels = cmp.Or(o.Masters, 3), cmp.Or(o.Sentinels, 3)
	e := &Engine{options: o, commands: commandTable(), moves: map[int]*Move{}}
	e.fleet = newTopology(o.Masters, o.Replicas)
	for i := range o.Masters * (1 + o.Replicas) {
		e.nodes = append(e.nodes, e.newNode(i, fmt.Sprintf("10.0.%d.%d:6379", o.Subnet, i+1)))
	}
	if o.Kind == Sentinel {
		for i := range o.Sentinels {
			s := e.newNode(len(e.nodes)+i, fmt.Sprintf("10.0.%d.%d:26379", o.Subnet, 100+i))
			s.sentinel = true
			e.sentinels = append(e.sentinels, s)
		}
	}
	return e
}

// TB is what Start needs of a test. The simulation's world is no test, and does not link package testing.
type TB interface {
	Cleanup(do func())
	Errorf(format string, args ...any)
}

// Start is New for a test, which fails if somebody sends what is not simulated. All chance is the same in each run.
func Start(t TB, o Options) *Engine {
	o.Rand = rand.New(rand.NewPCG(1, 2))
	e := New(o)
	t.Cleanup(func() {
		for _, command := range e.Unknown() {
			t.Errorf("not simulated: %s", command)
		}
	})
	return e
}

// URL is for celld's --store.
func (e *Engine) URL() string {
	var all []string
	switch from := e.nodes[:e.options.Masters]; e.options.Kind {
	case Sentinel:
		for _, s := range e.sentinels {
			all = append(all, s.Addr)
		}
		all[len(all)-1] += "?master=" + MasterName
	default:
		for _, n := range from {
			all = append(all, n.Addr)
		}
	}
	url := "redis://"
	if e.options.Password != "" {
		url += ":" + e.options.Password + "@"
	}
	return url + strings.Join(all, ",")
}

// Addrs are the addresses of all nodes, Sentinels last.
func (e *Engine) Addrs() (addrs []string) {
	for _, n := range e.all() {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

func (e *Engine) all() []*Node { return slices.Concat(e.nodes, e.sentinels) }

// Nodes are those that keep keys: at first masters, then the first replica of each, and so on.
func (e *Engine) Nodes() []*Node { return e.nodes }

// Sentinels are the nodes that watch the master, if it is so.
func (e *Engine) Sentinels() []*Node { return e.sentinels }

// At is the node of an address, nil if there is none.
func (e *Engine) At(addr string) *Node {
	for _, n := range e.all() {
		if n.Addr == addr {
			return n
		}
	}
	return nil
}

// MasterOf is the node that keeps a key, as the fleet is now.
func (e *Engine) MasterOf(key string) *Node {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.nodes[e.fleet.owner[slotOf([]byte(key))]]
}

// Commands are those that are simulated, in lower case, and whether they read or write keys.
func (e *Engine) Commands() map[string]bool {
	all := map[string]bool{}
	for name, row := range e.commands {
		all[name] = row.flags&(reads|writes) != 0
	}
	return all
}

// Unknown are commands that this package does not simulate, and that somebody has sent: in the order in which they came.
func (e *Engine) Unknown() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.unknown)
}

// Listens reports whether connections to an address are accepted.
func (e *Engine) Listens(addr string) bool {
	n := e.At(addr)
	e.mu.Lock()
	defer e.mu.Unlock()
	return n != nil && n.up
}

// Dial connects without latency: it is link.Options's.
func (e *Engine) Dial(_ context.Context, addr string) (net.Conn, error) {
	if !e.Listens(addr) {
		return nil, fmt.Errorf("dial %s: %w", addr, ErrDown)
	}
	ours, theirs := net.Pipe()
	go func() { _ = e.Serve(addr, theirs) }()
	return ours, nil
}
