// Package network carries bytes between simulated machines. Its connections behave as those of TCP:
//
//	n := network.New(rnd)
//	ln, err := n.Listen("10.0.0.1:6379")            // a net.Listener
//	conn, err := n.Dial("10.0.1.1:0", "10.0.0.1:6379")
//	conn.Write(p)                                   // arrives a moment later, in other pieces
//	n.Cut("10.0.0.1")                               // a machine dies: all its connections are reset
//
// Time is the process's, so in a simulation it is virtual. All chance comes from the source that New is given.
package network

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Network is all listeners and connections. Its methods may be called by any goroutine.
type Network struct {
	mu        sync.Mutex
	rnd       *rand.Rand
	listeners map[netip.AddrPort]*Listener
	conns     []*Conn // those of which no end is closed, in the order of their making
	lastPort  uint16

	Latency time.Duration // the most that bytes travel; some arrive at once. 0: they never travel
	Pieces  bool          // reads return less than has arrived, at random

	// Refuses reports that nobody listens, though a port is open; nil: nowhere.
	Refuses func(addr string) bool
}

// New returns a network without machines.
func New(rnd *rand.Rand) *Network {
	return &Network{rnd: rnd, listeners: map[netip.AddrPort]*Listener{}, lastPort: 40_000}
}

// below draws a number from 0 to most.
func (n *Network) below(most int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rnd.Int64N(most + 1)
}

// Listen opens a port. The error is EADDRINUSE if somebody listens there.
func (n *Network) Listen(addr string) (*Listener, error) {
	at := netip.MustParseAddrPort(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil {
		return nil, syscall.EADDRINUSE
	}
	return n.listen(at), nil
}

// TakeOver opens a port, in place of who listens there, as when an address moves: who connects from now on comes to the new one.
func (n *Network) TakeOver(addr string) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listen(netip.MustParseAddrPort(addr)), nil
}

func (n *Network) listen(at netip.AddrPort) *Listener {
	ln := &Listener{network: n, at: at, changed: newChange()}
	n.listeners[at] = ln
	return ln
}

// Dial connects from a machine, whose port is drawn where it is 0. The error is ECONNREFUSED where nobody listens.
func (n *Network) Dial(from, to string) (*Conn, error) {
	local, remote := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	time.Sleep(time.Duration(n.below(int64(n.Latency))))
	n.mu.Lock()
	defer n.mu.Unlock()
	ln := n.listeners[remote]
	if ln == nil || n.Refuses != nil && n.Refuses(to) {
		return nil, syscall.ECONNREFUSED
	}
	if local.Port() == 0 {
		n.lastPort++
		local = netip.AddrPortFrom(local.Addr(), n.lastPort)
	}
	client, server := n.connect(local, remote)
	ln.waiting = append(ln.waiting, server)
	ln.changed.happens()
	return client, nil
}

// Cut resets all connections of a machine, and closes its ports: it has died.
func (n *Network) Cut(machine string) {
	addr := netip.MustParseAddr(machine)
	n.mu.Lock()
	conns := slices.Clone(n.conns)
	var listeners []*Listener
	for at, ln := range n.listeners {
		if at.Addr() == addr {
			listeners = append(listeners, ln) // their order does not matter: closing wakes one acceptor each
		}
	}
	n.mu.Unlock()
	for _, ln := range listeners {
		ln.Close()
	}
	for _, c := range conns {
		if c.local.Addr() == addr {
			c.Reset()
		}
	}
}

// Pair returns the ends of a connection of its own, on which bytes arrive at once.
func Pair(local, remote string) (client, server *Conn) {
	return New(rand.New(rand.NewPCG(0, 0))).connect(netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote))
}

// connect makes a connection. The network is locked, or nobody else knows it yet.
func (n *Network) connect(local, remote netip.AddrPort) (client, server *Conn) {
	there, back := newPipe(), newPipe()
	client = &Conn{network: n, local: local, remote: remote, in: back, out: there, ended: make(chan struct{})}
	server = &Conn{network: n, local: remote, remote: local, in: there, out: back, ended: make(chan struct{}), peer: client}
	client.peer = server
	n.conns = append(n.conns, client, server)
	return client, server
}

// CutOne resets a connection, if there is one. Its ends may still have what has arrived.
func (n *Network) CutOne() {
	n.mu.Lock()
	var c *Conn
	if len(n.conns) > 0 {
		c = n.conns[n.rnd.IntN(len(n.conns))]
	}
	n.mu.Unlock()
	if c != nil {
		c.Reset()
	}
}

func (n *Network) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = slices.DeleteFunc(n.conns, func(o *Conn) bool { return o == c })
}

// Listener is an open port.
type Listener struct {
	network *Network
	at      netip.AddrPort
	waiting []*Conn // guarded by network.mu
	closed  bool    // likewise
	changed *change
}

// Accept waits for a connection. The error is net.ErrClosed once the port is closed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		next := l.changed.next()
		l.network.mu.Lock()
		if l.closed {
			l.network.mu.Unlock()
			return nil, net.ErrClosed
		}
		if len(l.waiting) > 0 {
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			l.network.mu.Unlock()
			return c, nil
		}
		l.network.mu.Unlock()
		<-next
	}
}

// Close closes the port. Connections that nobody has accepted are reset.
func (l *Listener) Close() error {
	n := l.network
	n.mu.Lock()
	waiting := l.waiting
	if n.listeners[l.at] == l {
		delete(n.listeners, l.at)
	}
	l.closed, l.waiting = true, nil
	n.mu.Unlock()
	l.changed.happens()
	for _, c := range waiting {
		c.Reset()
		c.close()
	}
	return nil
}

func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// change wakes all who wait for something to happen.
type change struct {
	mu sync.Mutex
	ch chan struct{}
}

func newChange() *change { return &change{ch: make(chan struct{})} }

// next is closed when something happens after this call.
func (c *change) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ch
}

func (c *change) happens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ch)
	c.ch = make(chan struct{})
}

// wait returns nil when something has happened, or os.ErrDeadlineExceeded at an instant. The zero Time: never.
func wait(next <-chan struct{}, until time.Time) error {
	if until.IsZero() {
		<-next
		return nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-next:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}
