package engine

import (
	"testing"

	"celld/integration_test/harness/engines"
	"celld/store/remote"
)

// TestConformance asks each engine, alone, as a Cluster and with Sentinels.
func TestConformance(t *testing.T) {
	engines.EachFleet(t, func(t *testing.T, f *engines.Fleet) { engines.Conform(t, remote.Options{URL: f.URL}) })
}
