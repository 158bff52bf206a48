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
		if rowTitle(g.row) == g.row || g.in != "" && rowTitle(g.in) == g.in || g.peer != "" && !slices.Contains(peerNames(), g.peer) ||
			strings.HasPrefix(g.words(), " ") {
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
	r.add(&row{name: "before", work: drive{}}, allPeers[0], sample{cpuMicroseconds: 0.4}, nil)
	for _, test := range []struct {
		goal    goal
		verdict string
	}{
		{goal{row: "x", metric: cpuMicroseconds, peer: "redis-cell", atMost: 0.2}, "met"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "ping", atMost: 1}, "not met"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "ping", atLeast: 2}, "met"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "ping", atLeast: 2.1}, "not met"},
		{goal{row: "x", metric: cpuMicroseconds, atMost: 0.2}, "met"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "throttlecrab", atMost: 1}, "not measured"},
		{goal{row: "y", metric: cpuMicroseconds, atMost: 1}, "not measured"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "celld", in: "before", atMost: 0.5}, "met"},
		{goal{row: "x", metric: cpuMicroseconds, peer: "celld", in: "y", atMost: 0.5}, "not measured"},
	} {
		if got := test.goal.judge(r).verdict(); got != test.verdict {
			t.Errorf("%+v: %s, want %s", test.goal, got, test.verdict)
		}
	}
}
