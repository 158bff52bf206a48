//go:build all

package engine

import (
	"fmt"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// fence takes and releases locks through several instances, and notes their IDs.
type fence struct {
	*testing.T
	clients []*harness.Conn
	last    map[string]int64
}

func newFence(t *testing.T, servers []*harness.Server) *fence {
	f := &fence{T: t, last: map[string]int64{}}
	for _, s := range servers {
		f.clients = append(f.clients, harness.Dial(t, s.Addr))
	}
	return f
}

// lock takes a lock by a celld, as soon as that can. Its ID must be above that of the last one.
func (f *fence) lock(by int, key string) {
	f.Helper()
	c := f.clients[by%len(f.clients)]
	var id int64
	celldtest.Eventually(f.T, "the lock is granted", func() bool {
		raw := c.Do("CL.TAKE", key, "1/1h,algo=conc")
		if strings.HasPrefix(raw, "-") {
			return false
		}
		_, id, _ = harness.ReadLease(raw)
		return id > 0
	})
	if id <= f.last[key] {
		f.Errorf("celld %d gives %d under %s, after %d", by, id, key, f.last[key])
	}
	f.last[key] = id
	if c.Do("CL.RELEASE", key, fmt.Sprint(id)) != ":1\r\n" {
		f.Errorf("celld %d does not release %d under %s", by, id, key)
	}
}

// TestFencing checks that the IDs of a key's locks grow while the clocks of engines are apart and are set, masters hand over, slots move,
// and an engine is away.
func TestFencing(t *testing.T) {
	t.Parallel()
	t.Run("masters apart", func(t *testing.T) {
		t.Parallel()
		fleet := engines.Redis(t).Cluster(t)
		ahead := fleet.MasterOf("a")
		ahead.With(clockAhead(t, 2)...)
		replicas := fleet.Nodes[3:]
		for _, n := range replicas {
			n.Pause() // so that nobody takes over
		}
		ahead.Kill()
		ahead.Restart()
		for _, n := range replicas {
			n.Resume()
		}
		fleet.Settled()
		other := "b"
		for fleet.MasterOf(other) == ahead {
			other += "b"
		}
		f := newFence(t, shared(t, fleet.URL, 2))
		for range 10 {
			f.lock(0, "a") // on the master that is ahead
			f.lock(0, other)
			f.lock(1, other)
		}
	})
	t.Run("handed over", func(t *testing.T) {
		t.Parallel()
		fleet := engines.Redis(t).Cluster(t)
		behind := fleet.Nodes[3]
		behind.Kill()
		behind.With(clockAhead(t, -20)...)
		behind.Restart()
		fleet.Settled()
		key, master := "a", fleet.Nodes[0]
		for fleet.MasterOf(key) != master {
			key += "a"
		}
		f := newFence(t, shared(t, fleet.URL, 2))
		for i := range 5 {
			f.lock(i, key)
		}
		celldtest.Eventually(t, "it has taken over", func() bool {
			behind.Do("CLUSTER", "FAILOVER")
			return behind.IsMaster() && !master.IsMaster()
		})
		for i := range 5 {
			f.lock(i, key)
		}
	})
	t.Run("moved", func(t *testing.T) {
		t.Parallel()
		fleet := engines.Redis(t).Cluster(t)
		f := newFence(t, shared(t, fleet.URL, 2))
		for range 2 {
			from := fleet.MasterOf("k")
			to := fleet.Nodes[0]
			if to == from {
				to = fleet.Nodes[1]
			}
			fleet.MoveSlot(fleet.Slot("k"), to, func() { f.lock(0, "k"); f.lock(1, "k") })
			f.lock(0, "k")
		}
	})
	t.Run("set back", func(t *testing.T) {
		t.Parallel()
		fleet := engines.StartEngine(t, "--appendonly", "yes", "--appendfsync", "always")
		n := fleet.Nodes[0]
		f := newFence(t, shared(t, fleet.URL, 2))
		for _, seconds := range []int{20, -20} {
			n.Kill()
			n.With(clockAhead(t, seconds)...)
			n.Restart()
			for i := range 5 {
				f.lock(i, "k")
			}
		}
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		fleet := engines.Redis(t).With(clockAhead(t, -20)...).Alone(t)
		n := fleet.Nodes[0]
		f := newFence(t, shared(t, fleet.URL, 2, "--store-failure", "local"))
		f.lock(0, "k")
		n.Kill()
		f.lock(0, "k")
		n.Restart()
		other := harness.Dial(t, shared(t, fleet.URL, 1)[0].Addr)
		celldtest.Eventually(t, "the engine answers", func() bool { return !strings.HasPrefix(other.Do("GET", "none"), "-") })
		f.clients[1] = other // which has seen nothing of that
		f.lock(1, "k")
	})
}
