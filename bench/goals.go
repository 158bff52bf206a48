//go:build linux

package main

import "fmt"

// goal is a bound on a figure of celld's, or on its ratio to a peer's.
type goal struct {
	row    string
	metric metric
	peer   string // empty: the bound is on the figure itself
	atMost float64
}

var goals = []goal{
	{"p128-1k", cpuMicroseconds, "ping", 1},
	{"p128-1k", cpuMicroseconds, "redis-cell", 0.15},
	{"p16-1k", cpuMicroseconds, "ping", 1},
	{"p16-1k", cpuMicroseconds, "redis-cell", 0.2},
	{"p1-1k", cpuMicroseconds, "ping", 1.05},
	{"p1-1k", cpuMicroseconds, "redis-cell", 0.8},
	{"p128-1m", cpuMicroseconds, "redis-cell", 0.15},
	{"keys-1m-16", rssMB, "redis-cell", 0.5},
	{"keys-1m-16", rssMB, "throttlecrab", 0.65},
	{"keys-10m-16", rssMB, "redis-cell", 0.5},
	{"keys-10m-16", rssMB, "throttlecrab", 0.65},
	{"keys-10m-16", growLongest, "", 5},
	{"keys-10m-16", expireLongest, "", 5},
	{"idle-10k", kbPerConnection, "", 1},
	{"p1-1k", p99, "redis-cell", 1},
	{"p16-1k", p99, "redis-cell", 1},
}

// words say the goal in a line of the table.
func (g goal) words() string {
	what := map[metric]string{
		cpuMicroseconds: "CPU per command", rssMB: "RSS", growLongest: "longest pause while growing, ms",
		expireLongest: "longest pause while expiring, ms", kbPerConnection: "KB a connection", p99: "p99",
	}[g.metric]
	if g.peer == "" {
		return fmt.Sprintf("%s ≤ %v", what, g.atMost)
	}
	return fmt.Sprintf("%s ≤ %v × %s", what, g.atMost, peerTitle(g.peer))
}

// outcome is a goal and how it went. Measured is nil where a figure is missing.
type outcome struct {
	Row      string   `json:"row"`
	Goal     string   `json:"goal"`
	AtMost   float64  `json:"at_most"`
	Measured *float64 `json:"measured"`
	Met      bool     `json:"met"`
}

func (g goal) judge(r *report) outcome {
	o := outcome{Row: g.row, Goal: g.words(), AtMost: g.atMost}
	own, ok := r.median(g.row, "celld", g.metric)
	if !ok {
		return o
	}
	if g.peer != "" {
		other, ok := r.median(g.row, g.peer, g.metric)
		if !ok || other == 0 {
			return o
		}
		own /= other
	}
	o.Measured, o.Met = &own, own <= g.atMost
	return o
}

func (o outcome) verdict() string {
	switch {
	case o.Measured == nil:
		return "not measured"
	case o.Met:
		return "met"
	}
	return "not met"
}

func peerTitle(name string) string {
	for _, p := range allPeers {
		if p.name == name {
			return p.title
		}
	}
	return name
}
