package enginetest

import (
	"slices"
	"time"
)

// do runs a fault under the Engine's lock.
func (n *Node) do(fault func()) {
	n.engine.mu.Lock()
	defer n.engine.mu.Unlock()
	fault()
}

// Pause stops the node's process: connections stay, and commands are answered after Resume.
func (n *Node) Pause() {
	n.do(func() {
		if n.up && n.paused == nil {
			n.paused = make(chan struct{})
			n.missed()
		}
	})
}

// Resume ends Pause. A master that was replaced meanwhile may take writes until it learns that.
func (n *Node) Resume() {
	n.do(func() {
		if n.paused != nil {
			close(n.paused)
			n.paused = nil
			n.returns()
		}
	})
}

// Kill ends the node's process, and all connections to it. Others are refused.
func (n *Node) Kill() {
	n.do(func() {
		if !n.up {
			return
		}
		if n.paused != nil {
			close(n.paused)
			n.paused = nil
		}
		n.up = false
		n.hangUp()
		for _, r := range n.engine.nodes {
			if r.source == n {
				r.catchUp() // what is under way arrives
				r.source, r.received = nil, nil
			}
		}
		if n.files != nil {
			n.save()
		}
		n.missed()
	})
}

// Start starts the node again, with what its files hold.
func (n *Node) Start() {
	n.do(func() {
		if n.up {
			return
		}
		d := n.data
		switch n.engine.options.Files {
		case NoFiles:
			d = newData()
		case EachSecond:
			d = n.files
		}
		n.begin(d)
		if n.source = nil; !n.IsMaster() {
			n.sync()
		}
		n.returns()
	})
}

// Isolate cuts the node off from all others: it goes on to serve those that reach it. Heal joins them again.
func (n *Node) Isolate() {
	n.do(func() {
		if n.isolated.IsZero() {
			n.catchUp()
			n.isolated = time.Now()
			n.missed()
		}
	})
}

func (n *Node) Heal() {
	n.do(func() {
		if n.isolated = (time.Time{}); n.up {
			n.returns()
		}
	})
}

// returns takes up the fleet after a node was away, and takes back that it has failed.
func (n *Node) returns() {
	if n.sentinel || !n.engine.fleet.failed[n.index] || !n.reachable() {
		n.learn()
		return
	}
	t := n.engine.fleet.next()
	t.failed[n.index] = false
	n.engine.change(t)
}

// missed looks at a node after NodeTimeout. If it is still away, a replica takes its place, or it counts as failed.
func (n *Node) missed() {
	e := n.engine
	if e.options.NodeTimeout <= 0 || n.sentinel || e.options.Kind == Alone {
		return
	}
	began, run := time.Now(), n.run
	n.awaySince = began
	time.AfterFunc(e.options.NodeTimeout, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n.reachable() || n.run != run || n.awaySince != began {
			return
		}
		if e.fleet.masterOf(n.index) >= 0 || !e.replace(n) {
			t := e.fleet.next()
			t.failed[n.index] = true
			e.change(t)
		}
	})
}

// Failover makes a replica the master in a master's place, and reports whether there was one that could. What the replica has not
// received is lost. The old master becomes a replica when it learns that.
func (e *Engine) Failover(master *Node) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replace(master)
}

func (e *Engine) replace(master *Node) bool {
	var heir *Node
	for _, i := range e.fleet.replicasOf(master.index) {
		r := e.nodes[i]
		if r.reachable() && (heir == nil || len(r.received) < len(heir.received)) {
			heir = r
		}
	}
	if heir == nil {
		return false
	}
	t := e.fleet.next()
	for slot := range t.owner {
		if t.owner[slot] == master.index {
			t.owner[slot] = heir.index
		}
	}
	for i, m := range t.master {
		if m == master.index || i == master.index {
			t.master[i] = heir.index
		}
	}
	t.master[heir.index] = -1
	for _, m := range e.moves { // the heir goes on with the slots that move
		if m.from == master {
			m.from = heir
		}
		if m.To == master {
			m.To = heir
		}
	}
	t.failed[master.index] = !master.reachable()
	e.change(t, heir)
	return true
}

// Loading makes the node answer that it loads its data, until it is called with false.
func (n *Node) Loading(is bool) {
	n.refuse(is, "LOADING Redis is loading the dataset in memory", whileLoading)
}

// Busy makes the node answer that a script runs.
func (n *Node) Busy(is bool) {
	n.refuse(is, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", noAuth)
}

func (n *Node) refuse(is bool, how string, except flags) {
	n.do(func() {
		if n.refuses, n.allows = "", except; is {
			n.refuses = how
		}
	})
}

// ReadOnly makes a master refuse writes as a replica does.
func (n *Node) ReadOnly(is bool) { n.do(func() { n.readOnly = is }) }

// OOM makes the node's memory full, whatever it holds.
func (n *Node) OOM(is bool) { n.do(func() { n.full = is }) }

// FlushScripts makes the node forget all scripts.
func (n *Node) FlushScripts() { n.do(func() { n.scripts.Flush() }) }

// Flush removes all keys of the node.
func (n *Node) Flush() {
	n.do(func() {
		for n.evict() {
		}
	})
}

// Evict removes a number of keys at random.
func (n *Node) Evict(count int) {
	n.do(func() {
		for range count {
			n.evict()
		}
	})
}

// SetClock sets how far the node's clock is ahead.
func (n *Node) SetClock(ahead time.Duration) { n.do(func() { n.offset = ahead }) }

// SetLag sets after how long the node gets its master's writes.
func (n *Node) SetLag(lag time.Duration) { n.do(func() { n.lag = lag }) }

// DropReplies applies the next commands that use keys, and cuts the connection of each before its reply.
func (n *Node) DropReplies(count int) { n.do(func() { n.drops = count }) }

// Move is a slot on its way to another master.
type Move struct {
	engine *Engine
	slot   int
	from   *Node
	To     *Node // the new master: where that fails over, its heir
}

// MoveSlot begins to move a slot, which must not be moving. Until End, keys that are there stay with the old master, and others are asked
// for at the new one.
func (e *Engine) MoveSlot(slot int, to *Node) *Move {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := &Move{e, slot, e.nodes[e.fleet.owner[slot]], to}
	e.moves[slot] = m
	return m
}

// Keys moves some keys, if the nodes reach each other, and returns how many are left. Negative: all.
func (m *Move) Keys(count int) (left int) {
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	return m.keys(count)
}

func (m *Move) keys(count int) (left int) {
	db := &m.from.data[0]
	db.purge(m.from.nowNS() / 1e6) // as MIGRATE moves nothing that has expired
	var names []string
	for _, name := range db.names {
		if slotOf([]byte(name)) == m.slot {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !m.from.reachable() || !m.To.reachable() {
		return len(names)
	}
	if count < 0 || count > len(names) {
		count = len(names)
	}
	for _, name := range names[:count] {
		v := db.values[name]
		db.remove(name)
		m.To.data[0].put(name, v)
		m.from.wrote(write{args: [][]byte{[]byte("del"), []byte(name)}})
		m.To.wrote(write{args: [][]byte{[]byte(name)}, moved: v.clone()})
	}
	return len(names) - count
}

// End moves what is left, and makes the new master the slot's. It returns false, and does neither, while the nodes do not reach each other.
func (m *Move) End() bool {
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	if !m.from.reachable() || !m.To.reachable() {
		return false
	}
	m.keys(-1)
	delete(m.engine.moves, m.slot)
	t := m.engine.fleet.next()
	t.owner[m.slot] = m.To.index
	m.engine.change(t, m.To, m.from)
	return true
}
