//go:build all

package engine

import (
	"fmt"
	"testing"

	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// The tests of this folder stand on what these do.
func TestCluster(t *testing.T) {
	t.Parallel()
	f := engines.Redis(t).Cluster(t)
	master := f.MasterOf("k")
	for i := range 25 {
		master.OK("SET", fmt.Sprint("{k}", i), "1")
	}
	var to *engines.Node
	for _, n := range f.Nodes[:3] {
		if n != master {
			to = n
		}
	}
	moved := 0
	f.MoveSlot(f.Slot("k"), to, func() { moved++ })
	if f.MasterOf("k") != to || to.Do("GET", "{k}24") != "$1\r\n1\r\n" || moved < 3 {
		t.Errorf("the slot is not where it was to be: %d steps", moved)
	}
	to.Kill()
	if is := f.MasterOf("k"); is == master || is == to {
		t.Error("nobody took over")
	}
	to.Restart()
	f.Settled()
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	f := engines.Redis(t).Sentinel(t)
	first := f.MasterOf("")
	first.Kill()
	if f.MasterOf("") == first {
		t.Error("nobody took over")
	}
	first.Restart()
	celldtest.Eventually(t, "the old master is a replica", func() bool { return !first.IsMaster() })
	f.Settled()
}
