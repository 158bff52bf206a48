//go:build all

package engine

import (
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
)

// takeAhead starts instances that take ahead, for as long as each of these says in turn.
func takeAhead(t *testing.T, url string, instances int, ms ...string) (all []*harness.Server) {
	t.Helper()
	for i := range instances {
		all = append(all, shared(t, url, 1, "--store-ahead", ms[i%len(ms)])...)
	}
	return all
}

// Eight instances hold units while a master is killed, and comes back.
func TestAheadBesideFailovers(t *testing.T) {
	t.Parallel()
	for _, kind := range engines.Kinds[1:] {
		t.Run(kind.Name, func(t *testing.T) {
			f := kind.Start(engines.Redis(t), t)
			all := takeAhead(t, f.URL, 8, "20", "100")
			l := (&load{clients: 1, keys: 1}).start(t, all, bursts...)
			l.outlivesMaster(f, "bucket0")
			l.check(500)
			if decidedAhead(t, all...) == 0 {
				t.Error("units have decided nothing")
			}
		})
	}
}

// Instances hold units while the way to the engine is slow, slower than calls wait, and cut.
func TestAheadOfASlowEngine(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t)
	p := newFarAway(t, f.Nodes[0].Addr)
	all := takeAhead(t, "redis://"+p.addr, 3, "200", "100")
	l := (&load{clients: 2, keys: 1}).start(t, all, bursts...)
	for _, delay := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 0} {
		p.delay.Store(int64(delay))
		for range 5 {
			f.Nodes[0].Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			l.goesOn(time.Now())
		}
	}
	p.delay.Store(int64(2 * time.Second))
	l.fails("the engine has not answered in time; the call may have been counted")
	at := time.Now()
	p.delay.Store(0)
	l.within("the end of a slow engine", at, 2*time.Second+returns)
	l.check(0)
	if decidedAhead(t, all...) == 0 {
		t.Error("units have decided nothing")
	}
}
