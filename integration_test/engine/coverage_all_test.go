//go:build all

package engine

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// TestReadyWithoutAPart takes a master and its replica from a Cluster. A celld is ready as long as the rest is served.
func TestReadyWithoutAPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ full, wantSaid string }{
		{"no", "5461 slots of the engine's Cluster have no master"},
		{"yes", "answers that it is not ready: the engine is away: the Cluster is down, and 5461 of its 16384 slots have no master"},
	} {
		t.Run("full coverage "+test.full, func(t *testing.T) {
			t.Parallel()
			f := engines.Redis(t).Cluster(t, "--cluster-require-full-coverage", test.full)
			srv := harness.Start(t, "--store", f.URL, "--http-bind", "127.0.0.1:0")
			key := ""
			for i := 0; f.MasterOf(key) != f.Nodes[0]; i++ {
				key = strings.Repeat("k", i)
			}
			f.Nodes[0].Kill()
			f.Nodes[3].Kill()
			want := map[bool]int{true: 0, false: 1}[test.full == "no"]
			celldtest.Eventually(t, "celld ready says so", func() bool {
				said, code := ready(t, srv)
				return code == want && strings.Contains(said, test.wantSaid)
			})
			if status, _, body := srv.Get("/readyz"); (status == 200) != (test.full == "no") {
				t.Errorf("/readyz: %d, %s", status, body)
			}
			if _, _, metrics := srv.Get("/metrics"); !strings.Contains(metrics, "celld_store_slots_without_master 5461\n") {
				t.Errorf("the metrics are\n%s", metrics)
			}
			c := harness.Dial(t, srv.Addr)
			if info := c.Do("INFO", "store"); !strings.Contains(info, "store_slots_without_master:5461\r\n") {
				t.Error(info)
			}
			if got := c.Do("CL.THROTTLE", key, "15", "30", "60"); !strings.HasPrefix(got, "-STOREDOWN ") {
				t.Errorf("a key without a master: %q", got)
			}
			f.Nodes[0].Restart()
			f.Nodes[3].Restart()
			celldtest.Eventually(t, "celld is ready, and says no more", func() bool {
				said, code := ready(t, srv)
				return code == 0 && said == ""
			})
			celldtest.Eventually(t, "the key is decided", func() bool { return c.Do("CL.THROTTLE", key, "15", "30", "60") == fresh })
		})
	}
}

// TestReadyInAFailover kills a master, so that a replica takes over. A celld is ready for as long as a failover may take: on a
// loaded machine this one may take longer.
func TestReadyInAFailover(t *testing.T) {
	t.Parallel()
	f := engines.Redis(t).Cluster(t)
	srv := harness.Start(t, "--store", f.URL, "--http-bind", "127.0.0.1:0")
	master := f.MasterOf("celld:readyz")
	stop := make(chan struct{})
	var killed atomic.Int64 // Unix ms
	killed.Store(math.MaxInt64)
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			status, _, body := srv.Get("/readyz")
			if lasts := time.Now().UnixMilli() - killed.Load(); status != 200 && lasts < engines.NodeTimeout+3000 {
				t.Errorf("not ready: %d, %s", status, body)
				return
			}
		}
	})
	c := harness.Dial(t, srv.Addr)
	killed.Store(time.Now().UnixMilli())
	master.Kill()
	failed := false
	celldtest.Eventually(t, "another has taken over", func() bool {
		got := c.Do("CL.THROTTLE", "celld:readyz", "15", "1", "60", "0")
		failed = failed || strings.HasPrefix(got, "-STOREDOWN ")
		return failed && strings.HasPrefix(got, "*5")
	})
	close(stop)
	asking.Wait()
}
