package main

import (
	"runtime"
	"testing"

	"celld/integration_test/simulation/runner"
	"celld/integration_test/simulation/world"
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

// What a run leaves out is told in ranges, and read again.
func TestWhatIsLeftOutIsReadAgain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "7": "7", "3,1,2": "1-3", "0,2000,10001,10002,10004": "0,2000,10001-10002,10004", "5-5,6": "5-6",
		"7-3": "error", "x": "error", "1-2-3": "error", "-1": "error", "1-99999999": "error",
	} {
		got := "error"
		if numbers, err := world.Numbers(text); err == nil {
			got = Seed{Without: numbers}.without()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
