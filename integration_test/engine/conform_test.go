package engine

import (
	"flag"
	"testing"

	"celld/integration_test/harness/engines"
	"celld/store/remote"
)

// TestConformance asks each engine, alone, as a Cluster and with Sentinels. Of the random cases each gets some: the simulated engines of
// integration_test/simulation/engine get all of them.
func TestConformance(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	defer checks.Set(checks.String())
	checks.Set("25")
	engines.EachFleet(t, func(t *testing.T, f *engines.Fleet) { engines.Conform(t, remote.Options{URL: f.URL}) })
}
