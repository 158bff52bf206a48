package enginetest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"celld/resp/wire"
)

const slots = 1 << 14

// topology is who keeps what. It does not change: a new one takes its place.
type topology struct {
	epoch  int
	owner  [slots]int // the master's index
	master []int      // of each node, by index; -1: it is one itself
	failed []bool     // by index: others have marked it
}

func newTopology(masters, replicas int) *topology {
	t := &topology{epoch: masters, master: make([]int, masters*(1+replicas)), failed: make([]bool, masters*(1+replicas))}
	for i := range t.master {
		if t.master[i] = i % masters; i < masters {
			t.master[i] = -1
		}
	}
	for i := range masters {
		for slot := slots * i / masters; slot < slots*(i+1)/masters; slot++ {
			t.owner[slot] = i
		}
	}
	return t
}

func (t *topology) next() *topology {
	c := *t
	c.epoch++
	c.master, c.failed = slices.Clone(t.master), slices.Clone(t.failed)
	return &c
}

// masterOf is the index of a node's master; -1 if it is one.
func (t *topology) masterOf(index int) int {
	if index >= len(t.master) {
		return -1
	}
	return t.master[index]
}

func (t *topology) replicasOf(index int) (all []int) {
	for i, m := range t.master {
		if m == index {
			all = append(all, i)
		}
	}
	return all
}

// spans calls each with each run of slots that have the same master.
func (t *topology) spans(each func(first, last, owner int)) {
	for first := 0; first < slots; {
		last := first
		for last+1 < slots && t.owner[last+1] == t.owner[first] {
			last++
		}
		each(first, last, t.owner[first])
		first = last + 1
	}
}

// change makes another topology known.
func (e *Engine) change(t *topology, first ...*Node) {
	e.fleet = t
	for _, n := range first {
		n.adopt()
	}
	for _, n := range e.all() {
		if !slices.Contains(first, n) {
			n.learn()
		}
	}
}

// learn makes a node take up the fleet as it is, within Notice. One that is not reachable does so later.
func (n *Node) learn() {
	if !n.reachable() {
		return
	}
	if n.engine.options.Notice <= 0 {
		n.adopt()
		return
	}
	time.AfterFunc(time.Duration(n.engine.options.Rand.Int64N(int64(n.engine.options.Notice))), func() {
		n.engine.mu.Lock()
		defer n.engine.mu.Unlock()
		if n.reachable() {
			n.adopt()
		}
	})
}

// fleetCommands are those of Clusters and Sentinels.
func fleetCommands() []command {
	return []command{
		{"cluster", -2, noScript | whileLoading, noKeys, clusterCommand},
		{"sentinel", -2, ofSentinel | noScript, noKeys, sentinelCommand},
	}
}

// covered is what a node of a Cluster thinks: which slots have no master, and whether it serves any.
func (n *Node) covered() (missing int, serves bool) {
	if slices.Contains(n.view.failed, true) {
		for _, owner := range n.view.owner {
			if n.view.failed[owner] {
				missing++
			}
		}
	}
	timeout := n.engine.options.NodeTimeout
	lost := !n.isolated.IsZero() && timeout > 0 && time.Since(n.isolated) >= timeout
	return missing, !lost && (missing == 0 || n.engine.options.PartOK && missing < slots)
}

// redirect returns the error of a command whose keys the node does not serve; "": it serves them.
func (n *Node) redirect(x *call, found [][]byte, asking bool) string {
	if n.engine.options.Kind != Cluster || len(found) == 0 {
		return ""
	}
	slot, missing, several := slotOf(found[0]), 0, false
	for _, key := range found {
		several = several || !bytes.Equal(key, found[0])
		if slotOf(key) != slot {
			return "CROSSSLOT Keys in request don't hash to the same slot"
		}
		if x.find(key) == nil {
			missing++
		}
	}
	owner := n.engine.nodes[n.view.owner[slot]]
	if _, serves := n.covered(); !serves {
		return "CLUSTERDOWN The cluster is down"
	}
	if n.view.failed[owner.index] {
		return "CLUSTERDOWN Hash slot not served"
	}
	move := n.engine.moves[slot]
	switch {
	case move != nil && move.from == n && owner == n && missing > 0:
		if missing < len(found) {
			return "TRYAGAIN Multiple keys request during rehashing of slot"
		}
		return fmt.Sprintf("ASK %d %s", slot, move.To.Addr)
	case move != nil && move.To == n && owner != n && asking:
		if several && missing > 0 {
			return "TRYAGAIN Multiple keys request during rehashing of slot"
		}
		return ""
	case owner != n:
		return fmt.Sprintf("MOVED %d %s", slot, owner.Addr)
	}
	return ""
}

func clusterCommand(x *call) {
	n := x.node
	if n.engine.options.Kind != Cluster {
		x.fail(errNoCluster)
		return
	}
	switch x.option(1) {
	case "INFO":
		missing, serves := n.covered()
		state := map[bool]string{true: "ok", false: "fail"}[serves]
		x.verbatim(fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\ncluster_slots_pfail:0\r\n"+
			"cluster_slots_fail:%d\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\ncluster_current_epoch:%d\r\n",
			state, slots, slots-missing, missing, len(n.engine.nodes), n.engine.options.Masters, n.view.epoch))
	case "SLOTS":
		x.clusterSlots()
	case "SHARDS":
		x.clusterShards()
	default:
		x.unsupported("ERR unknown subcommand '" + x.arg(1) + "'. Try CLUSTER HELP.")
	}
}

func (x *call) clusterSlots() {
	v, count := x.node.view, 0
	v.spans(func(int, int, int) { count++ })
	x.array(count)
	v.spans(func(first, last, owner int) {
		nodes := []int{owner}
		for _, r := range v.replicasOf(owner) {
			if !v.failed[r] {
				nodes = append(nodes, r)
			}
		}
		x.array(2 + len(nodes))
		x.int(int64(first))
		x.int(int64(last))
		for _, i := range nodes {
			n := x.node.engine.nodes[i]
			host, port := n.hostPort()
			x.array(4)
			x.bulk(host)
			x.int(port)
			x.bulk(n.ID())
			x.array(0)
		}
	})
}

func (x *call) clusterShards() {
	v := x.node.view
	var masters []int
	for i, m := range v.master {
		if m < 0 {
			masters = append(masters, i)
		}
	}
	x.array(len(masters))
	for _, m := range masters {
		var spans []int64
		v.spans(func(first, last, owner int) {
			if owner == m {
				spans = append(spans, int64(first), int64(last))
			}
		})
		x.pairs(2)
		x.bulk("slots")
		x.array(len(spans))
		for _, slot := range spans {
			x.int(slot)
		}
		nodes := append([]int{m}, v.replicasOf(m)...)
		x.bulk("nodes")
		x.array(len(nodes))
		for _, i := range nodes {
			n := x.node.engine.nodes[i]
			host, port := n.hostPort()
			x.pairs(7)
			x.out = wire.AppendBulks(x.out, "id", n.ID(), "port")
			x.int(port)
			role, health := "replica", "online"
			if i == m {
				role = "master"
			}
			if v.failed[i] {
				health = "fail"
			}
			x.out = wire.AppendBulks(x.out, "ip", host, "endpoint", host, "role", role, "replication-offset")
			x.int(0)
			x.out = wire.AppendBulks(x.out, "health", health)
		}
	}
}

// watched is the master as a Sentinel knows it.
func (n *Node) watched() *Node { return n.engine.nodes[n.view.owner[0]] }

func sentinelCommand(x *call) {
	e := x.node.engine
	known := len(x.args) == 3 && x.arg(2) == MasterName
	switch x.option(1) {
	case "GET-MASTER-ADDR-BY-NAME":
		if !known {
			x.out = wire.AppendNullArray(x.out, x.resp3)
			return
		}
		host, port := x.node.watched().hostPort()
		x.array(2)
		x.out = wire.AppendBulks(x.out, host, strconv.FormatInt(port, 10))
	case "SENTINELS":
		if !known {
			x.fail("ERR No such master with that name")
			return
		}
		x.array(len(e.sentinels) - 1)
		for _, s := range e.sentinels {
			if s != x.node {
				host, port := s.hostPort()
				x.pairs(3)
				x.out = wire.AppendBulks(x.out, "name", s.ID(), "ip", host, "port", strconv.FormatInt(port, 10))
			}
		}
	default:
		x.unsupported("ERR unknown subcommand '" + x.arg(1) + "'. Try SENTINEL HELP.")
	}
}

// tellSwitch tells a Sentinel's clients that another master has taken the place of the one before.
func (n *Node) tellSwitch(before *topology) {
	from, to := n.engine.nodes[before.owner[0]], n.watched()
	if from == to {
		return
	}
	host, port := from.hostPort()
	newHost, newPort := to.hostPort()
	n.tell("+switch-master", fmt.Sprintf("%s %s %d %s %d", MasterName, host, port, newHost, newPort))
}
