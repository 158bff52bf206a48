package engine

import (
	"testing"
	"time"

	"celld/integration_test/harness"
)

// returns is how soon decisions go on once the engine is back.
const returns = 3 * time.Second

// shared starts celld processes that share an engine.
func shared(t *testing.T, f *harness.Fleet, processes int, flags ...string) (servers []*harness.Server) {
	t.Helper()
	for range processes {
		servers = append(servers, harness.StartStress(t, append([]string{"--store", f.URL}, flags...)...))
	}
	return servers
}

// TestKilledMaster kills a master, which loses what its replica does not have yet.
func TestKilledMaster(t *testing.T) {
	for _, kind := range harness.Kinds[1:] {
		t.Run(kind.Name, func(t *testing.T) {
			f := kind.Start(harness.Redis(t), t)
			l := startLoad(t, shared(t, f, 2), 4, kinds...)
			l.goesOn(time.Now())
			master := f.MasterOf("throttle0")
			at := time.Now()
			master.Kill()
			patience := harness.NodeTimeout * time.Millisecond
			if kind.Name == "sentinel" {
				patience = harness.DownAfter * time.Millisecond
			}
			l.within("kill -9 of a master", at, patience+returns)
			master.Restart()
			f.Settled()
			l.goesOn(time.Now())
			l.check(500)
		})
	}
}

// TestPaused stops the engine for longer than calls wait. It decides what was sent when it goes on.
func TestPaused(t *testing.T) {
	f := harness.StartEngine(t)
	l := startLoad(t, shared(t, f, 2), 4, kinds...)
	l.goesOn(time.Now())
	for range 2 {
		f.Nodes[0].Pause()
		harness.Eventually(t, "calls time out", func() bool { return l.accounts[0].count(perhaps) > 0 })
		time.Sleep(time.Second) // the pause itself
		at := time.Now()
		f.Nodes[0].Resume()
		l.within("the end of a pause", at, returns)
	}
	l.check(0)
}
