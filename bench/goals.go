//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"

	"celld/store/memory/table"
)

// goal is a bound on a figure of celld's, or on its ratio to a peer's.
type goal struct {
	row     string
	metric  metric
	peer    string // empty: the bound is on the figure itself
	in      string // the peer's row; empty: the same
	atMost  float64
	atLeast float64 // in place of atMost, where more is better
}

var goals = slices.Concat([]goal{
	{row: "p128-1k", metric: cpuMicroseconds, peer: "ping", atMost: 1},
	{row: "p128-1k", metric: cpuMicroseconds, peer: "redis-cell", atMost: 0.15},
	{row: "p16-1k", metric: cpuMicroseconds, peer: "ping", atMost: 1},
	{row: "p16-1k", metric: cpuMicroseconds, peer: "redis-cell", atMost: 0.2},
	{row: "p1-1k", metric: cpuMicroseconds, peer: "ping", atMost: 1.05},
	{row: "p1-1k", metric: cpuMicroseconds, peer: "redis-cell", atMost: 0.8},
	{row: "p128-1m", metric: cpuMicroseconds, peer: "redis-cell", atMost: 0.15},
	{row: "keys-1m-16", metric: bytesPerKey, atMost: 1.1 * table.OverheadBytes},
	{row: "keys-take-1m-16", metric: bytesPerKey, atMost: 1.1 * (table.OverheadBytes + table.LimitEntryBytes)},
	{row: "keys-1m-16", metric: rssMB, peer: "redis-cell", atMost: 0.5},
	{row: "keys-1m-16", metric: rssMB, peer: "throttlecrab", atMost: 0.65},
	{row: "keys-10m-16", metric: rssMB, peer: "redis-cell", atMost: 0.5},
	{row: "keys-10m-16", metric: rssMB, peer: "throttlecrab", atMost: 0.65},
	{row: "keys-10m-16", metric: growLongest, atMost: 5},
	{row: "keys-10m-16", metric: expireLongest, atMost: 5},
	{row: "idle-10k", metric: kbPerConnection, atMost: 1},
	{row: "idle-10k", metric: freshMB, atMost: 12.58},
	{row: "p1-1k", metric: p99, peer: "redis-cell", atMost: 1},
	{row: "p16-1k", metric: p99, peer: "redis-cell", atMost: 1},
	{row: "aof-everysec-p16", metric: cpuMicroseconds, peer: "celld", in: "aof-off-p16", atMost: 1.1},
	{row: "aof-always-p1", metric: perSecond, peer: "set", atLeast: 2},
	{row: "aof-always-p16", metric: perSecond, peer: "set", atLeast: 2},
	{row: "take-gcra-p1", metric: cpuMicroseconds, peer: "celld", in: "p1-1k", atMost: 1.3},
	{row: "take-gcra-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 1.3},
	{row: "take-gcra-p128", metric: cpuMicroseconds, peer: "celld", in: "p128-1k", atMost: 1.3},
	{row: "take-gcra-p128-1m", metric: cpuMicroseconds, peer: "celld", in: "p128-1m", atMost: 1.3},
	{row: "take-gcra-pass-p16", metric: cpuMicroseconds, peer: "celld", in: "aof-off-p16", atMost: 1.3},
	{row: "take-window-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 1.5},
	{row: "take-slide-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 1.5},
	{row: "take-buckets-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 1.5},
	{row: "take-log-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 3},
	{row: "take-log-pass-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 3},
	{row: "take-plan-costs-p16", metric: cpuMicroseconds, peer: "celld", in: "take-three-p16", atMost: 1.2},
	{row: "take-four-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 2.5},
	{row: "take-four-pass-p16", metric: cpuMicroseconds, peer: "celld", in: "p16-1k", atMost: 2.5},
	{row: "take-log-always-c1", metric: cpuMicroseconds, peer: "celld", in: "take-gcra-always-c1", atMost: 1.5},
	{row: "evalsha-p1", metric: cpuMicroseconds, peer: "redis-cell", atMost: 1},
	{row: "evalsha-p16", metric: cpuMicroseconds, peer: "redis-cell", atMost: 1},
	{row: "save-10m", metric: saveSeconds, peer: "redis-cell", atMost: 1},
	{row: "save-10m", metric: loadSeconds, peer: "redis-cell", atMost: 1},
	{row: "save-10m", metric: peakRatio, atMost: 1.1},
	{row: "save-10m", metric: bgsaveLongest, atMost: 5},
	{row: "save-10m", metric: rewriteLongest, atMost: 5},
}, countingGoals, coreGoals, waitingGoals, engineGoals, checkGoals, envoyGoals)

// words say the goal in a line of the table.
func (g goal) words() string {
	what := map[metric]string{
		cpuMicroseconds: "CPU per command", rssMB: "RSS", bytesPerKey: "bytes a key, against the server's estimate,",
		growLongest: "longest pause while growing, ms", expireLongest: "longest pause while expiring, ms",
		kbPerConnection: "KB a connection", freshMB: "RSS MB of a process that has just started", p99: "p99",
		perSecond: "commands/s", saveSeconds: "SAVE", loadSeconds: "loading", peakRatio: "peak memory while saving over before",
		bgsaveLongest: "longest pause while saving, ms", rewriteLongest: "longest pause while rewriting, ms",
		shareOfCeiling: "two goroutines, share of the ceiling", twoOverOne: "two goroutines, calls a second × one's",
		lateP99: "p99 of how late an answer comes, ms,", rateOff: "rate, % off the limit's,",
		engineCPU: "the engine's CPU per decision", p50: "p50", allowedShare: "allowed, of what the limit permits,",
		engineAsked: "commands of the engine per decision", addedP99: "added to p99, ms", growingOverHit: "a new key, time × a hit's",
		floodOverHit: "a new key that evicts one, time × a hit's",
	}[g.metric]
	bound := fmt.Sprintf("≤ %v", g.atMost)
	if g.atLeast > 0 {
		bound = fmt.Sprintf("≥ %v", g.atLeast)
	}
	if g.peer == "" {
		return what + " " + bound
	}
	words := fmt.Sprintf("%s %s × %s", what, bound, peerTitle(g.peer))
	if g.in != "" {
		words += " at " + rowTitle(g.in)
	}
	return words
}

// outcome is a goal and how it went. Measured is nil where a figure is missing.
type outcome struct {
	Row      string   `json:"row"`
	Goal     string   `json:"goal"`
	AtMost   float64  `json:"at_most,omitempty"`
	AtLeast  float64  `json:"at_least,omitempty"`
	Measured *float64 `json:"measured"`
	Met      bool     `json:"met"`
}

func (g goal) judge(r *report) outcome {
	o := outcome{Row: g.row, Goal: g.words(), AtMost: g.atMost, AtLeast: g.atLeast}
	own, ok := r.median(g.row, "celld", g.metric)
	if !ok {
		return o
	}
	if g.peer != "" {
		other, ok := r.median(cmp.Or(g.in, g.row), g.peer, g.metric)
		if !ok || other == 0 {
			return o
		}
		own /= other
	}
	o.Measured, o.Met = &own, own <= g.atMost
	if g.atLeast > 0 {
		o.Met = own >= g.atLeast
	}
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
