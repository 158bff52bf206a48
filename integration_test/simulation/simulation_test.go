package main

import (
	"runtime"
	"testing"

	"celld/integration_test/simulation/runner"
	"celld/internal/celldtest"

	_ "pgregory.net/rapid" // for its flags, which all tests here are given
)

func program(t *testing.T) Simulation {
	t.Helper()
	p, err := runner.Build(t.Context(), World)
	if err != nil {
		t.Fatal(err)
	}
	return Simulation{Program: p}
}

// TestSeeds runs seeds, each of which takes a second of CPU time, the first of them twice. A failing one is run by
// go run ./simulation -seed N.
func TestSeeds(t *testing.T) {
	const twice = 4
	seeds := uint64(20)
	if celldtest.Thorough {
		seeds = 500
	}
	s := program(t)
	sum := s.Many(t.Context(), twice+1, seeds-twice, "", runtime.GOMAXPROCS(0), false, nil)
	t.Log(sum)
	for _, r := range append(sum.Failed, s.Many(t.Context(), 1, twice, "", runtime.GOMAXPROCS(0), true, nil).Failed...) {
		t.Error(r.Err)
	}
	if n := sum.Counts["undecided-keys"]; n*10 > sum.Counts["keys"] {
		t.Errorf("%d of %d keys have too many orders to try", n, sum.Counts["keys"])
	}
}

// The mutants go with celld as it is, and what they are about with the world.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		if word := noTopic(m.about); word != "" {
			t.Errorf("%s: no world is about %s", m.name, word)
		}
		if _, err := m.broken(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
