// Package engines starts the engines that celld keeps its limits on: Redis and Valkey, alone, as Cluster and with Sentinels.
//
//	f := engines.Redis(t).Cluster(t)                                   // f.URL is for --store
//	engines.EachFleet(t, func(t *testing.T, f *engines.Fleet) { … })
package engines

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const (
	clusterSlots  = 16384
	clusterShards = 3

	// MasterName is the name of the Sentinels' master.
	MasterName = "celld"

	// NodeTimeout is after how many ms a Cluster, or Sentinels, see that a server has gone. Sentinels ask a server once a second: with
	// 1000 they took the new master for dead at times, and made another before celld had left it.
	NodeTimeout = 2000
)

// Cluster runs three masters and a replica of each. Nodes[i+3] is the replica of Nodes[i] at first. With --tls-cluster yes its URL is one
// of TLS.
func (e Engine) Cluster(t testing.TB, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{T: t, Engine: e}
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.Itoa(NodeTimeout)}, args...)
	for range 2 * clusterShards {
		n := e.node(t, args...)
		if n.Password != "" {
			n.OK("CONFIG", "SET", "masterauth", n.Password)
		}
		f.Nodes = append(f.Nodes, n)
	}
	if f.URL = "redis://" + addrs(f.Nodes[:clusterShards]); f.Nodes[0].TLSPort != "" {
		f.URL = "rediss://127.0.0.1:" + f.Nodes[0].TLSPort
	}
	for i, n := range f.Nodes {
		n.OK("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < clusterShards {
			slots := []string{"CLUSTER", "ADDSLOTS"} // 6.2 knows no ranges
			for slot := clusterSlots * i / clusterShards; slot < clusterSlots*(i+1)/clusterShards; slot++ {
				slots = append(slots, strconv.Itoa(slot))
			}
			n.OK(slots...)
		}
		f.Nodes[0].OK("CLUSTER", "MEET", "127.0.0.1", cmp.Or(n.TLSPort, n.Port))
	}
	for i, replica := range f.Nodes[clusterShards:] {
		master := f.Nodes[i].ID()
		celldtest.Eventually(t, "the replica knows its master", func() bool {
			return replica.Do("CLUSTER", "REPLICATE", master) == "+OK\r\n"
		})
	}
	f.Settled()
	return f
}

// Sentinel runs a master, two replicas, and three Sentinels.
func (e Engine) Sentinel(t testing.TB, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{T: t, Engine: e, Nodes: []*Node{e.node(t, args...)}}
	master := f.Nodes[0]
	conf := fmt.Sprintf(
		"sentinel monitor %[1]s 127.0.0.1 %[2]s 2\nsentinel down-after-milliseconds %[1]s %[3]d\nsentinel failover-timeout %[1]s 5000\n",
		MasterName, master.Port, NodeTimeout)
	if master.Password != "" {
		args = append(args, "--masterauth", master.Password)
		conf += fmt.Sprintf("sentinel auth-pass %s %s\n", MasterName, master.Password)
	}
	for range 2 {
		f.Nodes = append(f.Nodes, e.node(t, append([]string{"--replicaof", "127.0.0.1", master.Port}, args...)...))
	}
	f.Settled() // Sentinels ask for replicas every 10 s only
	for range 3 {
		f.Sentinels = append(f.Sentinels, e.node(t, "--sentinel", conf))
	}
	f.URL = "redis://" + addrs(f.Sentinels) + "?master=" + MasterName
	f.Settled()
	return f
}

// Settled waits until all servers that run serve, and all replicas have their master's keys.
func (f *Fleet) Settled() {
	f.T.Helper()
	cluster := len(f.Nodes) == 2*clusterShards
	for _, n := range f.Nodes {
		celldtest.Eventually(f.T, "port "+n.Port+" serves", func() bool {
			return !n.Running() || n.healthy(cluster) && (n.IsMaster() || n.Info("master_link_status") == "up")
		})
	}
	celldtest.Eventually(f.T, "all know the last election", func() bool { // who does not is not elected in the next
		epochs := map[string]bool{}
		for _, n := range f.Nodes {
			if cluster && n.Running() {
				epochs[n.epoch()] = true
			}
		}
		return len(epochs) <= 1
	})
	for _, n := range f.Sentinels {
		celldtest.Eventually(f.T, "Sentinel "+n.Port+" knows all", func() bool {
			is := n.Info("master0")
			return strings.Contains(is, "status=ok") && strings.HasSuffix(is, "slaves=2,sentinels=3")
		})
	}
}

// healthy reports whether a server of a Cluster knows all others and serves every slot.
func (n *Node) healthy(cluster bool) bool {
	if !cluster {
		return true
	}
	n.T.Helper()
	info := n.text("CLUSTER", "INFO")
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(2*clusterShards))
}

// epoch is the number of the last election that a server of a Cluster knows of.
func (n *Node) epoch() string {
	n.T.Helper()
	_, after, _ := strings.Cut(n.text("CLUSTER", "INFO"), "cluster_current_epoch:")
	epoch, _, _ := strings.Cut(after, "\r")
	return epoch
}

// ID is the server's name in its Cluster.
func (n *Node) ID() string { return n.text("CLUSTER", "MYID") }

// MasterOf is the server that has a key now: asked by those that run.
func (f *Fleet) MasterOf(key string) *Node {
	f.T.Helper()
	if len(f.Nodes) == 2*clusterShards {
		return f.MasterOfSlot(f.Slot(key))
	}
	return f.find("a master", (*Node).IsMaster)
}

// MasterOfSlot is the server of a Cluster that has a slot now.
func (f *Fleet) MasterOfSlot(slot int) *Node {
	f.T.Helper()
	return f.find(fmt.Sprint("a master of slot ", slot), func(n *Node) bool { return n.IsMaster() && n.serves(slot) })
}

// find waits until a server that runs is such.
func (f *Fleet) find(what string, is func(*Node) bool) (found *Node) {
	f.T.Helper()
	celldtest.Eventually(f.T, "there is "+what, func() bool {
		for _, n := range f.Nodes {
			if n.Running() && is(n) {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// Slot is a key's in a Cluster.
func (f *Fleet) Slot(key string) int {
	f.T.Helper()
	for _, n := range f.Nodes {
		if n.Running() {
			return int(celldtest.IntReply(n.Do("CLUSTER", "KEYSLOT", key)))
		}
	}
	f.T.Fatal("no server runs")
	return 0
}

// serves reports whether a slot is the server's, by what it says of itself.
func (n *Node) serves(slot int) bool {
	n.T.Helper()
	for line := range strings.Lines(n.text("CLUSTER", "NODES")) {
		fields := strings.Fields(line)
		if !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, field := range fields[8:] {
			first, last, ranged := strings.Cut(field, "-")
			from, err := strconv.Atoi(first)
			to := from
			if ranged {
				to, _ = strconv.Atoi(last)
			}
			if err == nil && from <= slot && slot <= to {
				return true
			}
		}
	}
	return false
}

// MoveSlot moves a slot with its keys to another master, key by key, as redis-cli --cluster reshard does. during is called while keys
// of it are on both, and may be nil.
func (f *Fleet) MoveSlot(slot int, to *Node, during func()) {
	f.T.Helper()
	text := strconv.Itoa(slot)
	from := f.MasterOfSlot(slot)
	source, target := from.ID(), to.ID()
	to.OK("CLUSTER", "SETSLOT", text, "IMPORTING", source)
	from.OK("CLUSTER", "SETSLOT", text, "MIGRATING", target)
	for {
		keys := harness.KeyList(from.Do("CLUSTER", "GETKEYSINSLOT", text, "10"))
		for _, key := range keys {
			migrate := []string{"MIGRATE", "127.0.0.1", to.Port, key, "0", "60000"}
			if to.Password != "" {
				migrate = append(migrate, "AUTH", to.Password)
			}
			if got := from.patient(migrate...); got != "+OK\r\n" && got != "+NOKEY\r\n" {
				f.T.Fatalf("MIGRATE %s: %q", key, got)
			}
		}
		if during != nil {
			during()
		}
		if len(keys) == 0 {
			break
		}
	}
	to.OK("CLUSTER", "SETSLOT", text, "NODE", target) // the new owner first: else both refuse it for a moment
	from.OK("CLUSTER", "SETSLOT", text, "NODE", target)
}
