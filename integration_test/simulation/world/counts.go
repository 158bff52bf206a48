package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are how often something has happened. Those that have not are there, too: what no seed meets is a gap of the simulation.
type counts map[string]int

func newCounts() counts {
	c := counts{}
	for kind := range kinds {
		c[kind] = 0
	}
	for _, s := range scenes {
		c["scene "+s.name] = 0
	}
	for _, kind := range []string{"refused create", "refused append", "refused write", "refused sync", "refused sync the directory",
		"repaired", "half closed", "slow to read", "calls in two parts", "crowd refused", "asked by JSON", "asked by script",
		"asked by EXEC", "decided ahead", "asked without the engine", "may be without the engine",
		"wrong file", "came again", "not ready", "envoy's hits checked", "budget checked", "gave back",
		"saw older states", "asked to reserve", "counts checked", "knocked",
		"saw evictions", "saw whole", "error LOADING", "error MISCONF", "error OOM", "error STOREDOWN", "error BUSY"} {
		c[kind] = 0
	}
	return c
}

func (w *world) count(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[kind]++
}

func (c counts) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s=%d ", strings.ReplaceAll(kind, " ", "-"), c[kind])
	}
	return b.String()
}
