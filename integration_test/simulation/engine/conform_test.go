package engine

import (
	"testing"

	"celld/integration_test/harness/engines"
	"celld/internal/enginetest"
	"celld/store/remote"
)

// kinds are the fleets that tests run on.
var kinds = []struct {
	name    string
	options enginetest.Options
}{
	{"alone", enginetest.Options{Valkey: true, Password: "s3cret"}},
	{"cluster", enginetest.Options{Kind: enginetest.Cluster, Replicas: 1}},
	{"sentinel", enginetest.Options{Kind: enginetest.Sentinel, Replicas: 2, Files: enginetest.EachSecond}},
}

// TestConformance asks a Store on each kind of Engine what real engines are asked.
func TestConformance(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			e := enginetest.Start(t, kind.options)
			engines.Conform(t, remote.Options{URL: e.URL(), Dial: e.Dial})
		})
	}
}
