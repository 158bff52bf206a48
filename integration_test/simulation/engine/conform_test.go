package engine

import (
	"testing"

	"celld/integration_test/harness/engines"
	"celld/store/remote"
)

// kinds are the fleets that tests run on.
var kinds = []struct {
	name    string
	options Options
}{
	{"alone", Options{Valkey: true, Password: "s3cret"}},
	{"cluster", Options{Kind: Cluster, Replicas: 1}},
	{"sentinel", Options{Kind: Sentinel, Replicas: 2, Files: EachSecond}},
}

// newEngine is New for a test, which fails if somebody sends what is not simulated.
func newEngine(t testing.TB, o Options) *Engine {
	o.Rand = testRand()
	e := New(o)
	t.Cleanup(func() {
		for _, command := range e.Unknown() {
			t.Errorf("not simulated: %s", command)
		}
	})
	return e
}

// TestConformance asks a Store on each kind of Engine what real engines are asked.
func TestConformance(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			e := newEngine(t, kind.options)
			engines.Conform(t, remote.Options{URL: e.URL(), Dial: e.Dial})
		})
	}
}
