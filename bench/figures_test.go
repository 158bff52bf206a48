//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		rounds         []float64
		median, lo, hi float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{3, 1}, 2, 1, 3},
		{[]float64{9, 1, 2}, 2, 1, 9},
	} {
		if got := spreadOf(test.rounds); got.Median != test.median || got.Min != test.lo || got.Max != test.hi {
			t.Errorf("%v: %+v", test.rounds, got)
		}
	}
}

func TestLatencies(t *testing.T) {
	ms := time.Millisecond
	got := withOmitted([]time.Duration{ms / 2, ms, 3 * ms})
	slices.Sort(got)
	if want := []time.Duration{ms / 2, ms, ms, 2 * ms, 3 * ms}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got.permille(500) != ms || got.permille(999) != 3*ms || got.permille(0) != ms/2 || got.longest() != 3*ms {
		t.Errorf("%v %v %v %v", got.permille(500), got.permille(999), got.permille(0), got.longest())
	}
}

// TestGoals judges figures made up, and names the goals whose rows or peers do not exist.
func TestGoals(t *testing.T) {
	for _, g := range goals {
		if rowTitle(g.row) == g.row || g.peer != "" && peerTitle(g.peer) == g.peer || strings.HasPrefix(g.words(), " ") {
			t.Errorf("%+v: %s", g, g.words())
		}
	}
	r := &report{}
	for _, p := range allPeers {
		cpu := map[string]float64{"celld": 0.2, "redis-cell": 1, "ping": 0.1}[p.name]
		if cpu > 0 {
			r.add(&row{name: "x", work: drive{}}, p, sample{cpuMicroseconds: cpu}, nil)
		}
	}
	for _, test := range []struct {
		goal    goal
		verdict string
	}{
		{goal{"x", cpuMicroseconds, "redis-cell", 0.2}, "met"},
		{goal{"x", cpuMicroseconds, "ping", 1}, "not met"},
		{goal{"x", cpuMicroseconds, "", 0.2}, "met"},
		{goal{"x", cpuMicroseconds, "throttlecrab", 1}, "not measured"},
		{goal{"y", cpuMicroseconds, "", 1}, "not measured"},
	} {
		if got := test.goal.judge(r).verdict(); got != test.verdict {
			t.Errorf("%+v: %s, want %s", test.goal, got, test.verdict)
		}
	}
}
