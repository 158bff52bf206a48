package enginetest

import (
	"fmt"
	"slices"
	"time"

	"celld/resp/script"
)

// Node is a server of an Engine.
type Node struct {
	Addr string

	engine   *Engine
	index    int // among all nodes of the Engine
	sentinel bool
	scripts  *script.Engine
	run      string // 40 hexadecimal digits, another at each start
	data     *data
	clients  []*client
	view     *topology // the fleet as the node knows it
	source   *Node     // whose writes it gets; nil: nobody's
	received log       // of source, not applied yet
	unsaved  log       // of its own, not in its files yet
	files    *data     // nil: as Options.Files says they are the same as data, or there are none

	up        bool
	paused    chan struct{} // closed by Resume; nil: it runs
	isolated  time.Time     // since when it has lost the others; zero: it has not
	refuses   string        // the error of all commands but those that allows has; "": none
	allows    flags
	full      bool // writes that take memory are refused
	readOnly  bool
	lag       time.Duration
	offset    time.Duration // of its clock
	drops     int           // commands that are applied, and whose connection is cut then
	awaySince time.Time     // when it was last paused, killed or isolated
}

func (e *Engine) newNode(index int, addr string) *Node {
	n := &Node{Addr: addr, engine: e, index: index, view: e.fleet, lag: e.options.Lag}
	n.begin(newData())
	if source := e.fleet.masterOf(index); source >= 0 && source < len(e.nodes) {
		n.source = e.nodes[source]
	}
	return n
}

// begin starts a node's process.
func (n *Node) begin(d *data) {
	n.engine.runs++
	n.up, n.data, n.received, n.unsaved, n.files = true, d, nil, nil, nil
	if n.engine.options.Files == EachSecond {
		n.files = d.clone()
	}
	n.scripts = script.NewEngine()
	n.run = fmt.Sprintf("%040x", n.engine.runs)
}

// ID is the node's name in its Cluster, which stays.
func (n *Node) ID() string { return fmt.Sprintf("%02x%038x", n.engine.options.Subnet, n.index+1) }

// nowNS is the node's clock.
func (n *Node) nowNS() int64 {
	if clock := n.engine.options.Clock; clock != nil {
		return clock(n.index) + int64(n.offset)
	}
	return time.Now().UnixNano() + int64(n.offset)
}

// IsMaster reports whether the node takes itself for a master.
func (n *Node) IsMaster() bool { return n.sentinel || n.view.masterOf(n.index) < 0 }

// master is the node's, as it knows it; nil for a master.
func (n *Node) master() *Node {
	if i := n.view.masterOf(n.index); i >= 0 && !n.sentinel {
		return n.engine.nodes[i]
	}
	return nil
}

// reachable reports whether others get answers from a node.
func (n *Node) reachable() bool { return n.up && n.paused == nil && n.isolated.IsZero() }

// A write is a command that a replica repeats, at its master's time; or a key that a Cluster has moved there.
type write struct {
	at    time.Time
	nowNS int64
	db    int
	args  [][]byte
	moved *value // nil: args are run
}

type log []write

// due takes those that are older than lag from a log.
func (l *log) due(lag time.Duration) (all []write) {
	i, now := 0, time.Now()
	for i < len(*l) && now.Sub((*l)[i].at) >= lag {
		i++
	}
	all, *l = (*l)[:i:i], (*l)[i:]
	return all
}

// wrote passes a write on to a node's replicas and files.
func (n *Node) wrote(w write) {
	var replicas []*Node
	for _, r := range n.engine.nodes {
		if r.source == n && r.up {
			replicas = append(replicas, r)
		}
	}
	if len(replicas) == 0 && n.files == nil {
		return
	}
	w.at, w.args = time.Now(), slices.Clone(w.args)
	for i, arg := range w.args { // a connection's
		w.args[i] = slices.Clone(arg)
	}
	for _, r := range replicas {
		r.received = append(r.received, w)
		r.catchUp()
	}
	if n.files != nil {
		n.unsaved = append(n.unsaved, w)
		n.save()
	}
}

// save applies to the files what is old enough.
func (n *Node) save() {
	for _, w := range n.unsaved.due(fsyncSecond) {
		n.repeat(n.files, w)
	}
}

// catchUp applies what a replica has received by now.
func (n *Node) catchUp() {
	if n.source == nil || !n.source.isolated.IsZero() || !n.reachable() {
		return
	}
	for _, w := range n.received.due(n.lag) {
		n.repeat(n.data, w)
		n.wrote(w)
	}
}

// repeat runs a write again.
func (n *Node) repeat(d *data, w write) {
	db := &d[w.db]
	if w.moved != nil {
		db.put(string(w.args[0]), w.moved.clone())
		return
	}
	x := &call{node: n, db: db, dbIndex: w.db, args: w.args, nowNS: w.nowNS, writes: true}
	n.engine.commands[string(w.args[0])].run(x)
}

// sync gives a replica all that its master has.
func (n *Node) sync() {
	n.source = n.master()
	n.received = nil
	if n.source == nil || !n.source.up || !n.source.isolated.IsZero() || !n.isolated.IsZero() {
		n.source = nil
		return
	}
	n.data = n.source.data.clone()
	if n.files != nil {
		n.files, n.unsaved = n.data.clone(), nil
	}
}

// adopt makes a node take up the fleet as it is now.
func (n *Node) adopt() {
	was, before := n.IsMaster(), n.view
	n.catchUp() // a replica that is promoted has this, and has lost the rest
	n.view = n.engine.fleet
	switch {
	case n.sentinel:
		n.tellSwitch(before)
	case n.IsMaster():
		n.source, n.received = nil, nil
	case was || n.source != n.master():
		n.sync()
		if was && n.engine.options.Kind == Sentinel { // which sends CLIENT KILL
			n.hangUp()
		}
	}
	if !n.sentinel && n.IsMaster() {
		for _, r := range n.engine.nodes { // who could not reach it before
			if r.up && r.source == nil && r.master() == n {
				r.sync()
			}
		}
	}
}

// hangUp ends all connections.
func (n *Node) hangUp() {
	for _, c := range n.clients {
		c.cut()
	}
	n.clients = nil
}
