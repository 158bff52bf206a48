//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
)

// row is one piece of work that every peer does.
type row struct {
	name  string // what -rows matches, and the key in the JSON file
	title string
	work  work
	once  bool // done in the first round only: memory hardly differs between rounds
	big   bool // left out by -quick
}

// work is a kind of row.
type work interface {
	run(*bench, *peer) (sample, error)
	fits(*peer) bool
	seconds(*peer) float64 // an estimate, for the progress lines
	quick() work
}

var allRows = slices.Concat([]row{
	{name: "p1-1k", title: "P=1, 50 connections, 1,000 keys", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000}},
	{name: "p16-1k", title: "P=16, 50 connections, 1,000 keys", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000}},
	{name: "p128-1k", title: "P=128, 50 connections, 1,000 keys", work: drive{clients: 50, pipeline: 128, keys: 1000, requests: 3_840_000}},
	{name: "p1-1m", title: "P=1, 50 connections, 1M keys", work: drive{clients: 50, pipeline: 1, keys: 1_000_000, requests: 400_000, limit: lasting}},
	{name: "p16-1m", title: "P=16, 50 connections, 1M keys", work: drive{clients: 50, pipeline: 16, keys: 1_000_000, requests: 3_200_000, limit: lasting}},
	{name: "p128-1m", title: "P=128, 50 connections, 1M keys", work: drive{clients: 50, pipeline: 128, keys: 1_000_000, requests: 3_840_000, limit: lasting}},
	{name: "p16-new", title: "P=16, 50 connections, new keys", work: drive{clients: 50, pipeline: 16, keys: anyKey, requests: 3_200_000, limit: lasting}},
	{name: "p128-new", title: "P=128, 50 connections, new keys", work: drive{clients: 50, pipeline: 128, keys: anyKey, requests: 3_840_000, limit: lasting}},
	{name: "p16-ended", title: "P=16, 50 connections, 1M keys that have ended", work: drive{clients: 50, pipeline: 16, keys: 1_000_000, requests: 3_200_000, limit: brief}},
	{name: "p128-ended", title: "P=128, 50 connections, 1M keys that have ended", work: drive{clients: 50, pipeline: 128, keys: 1_000_000, requests: 3_840_000, limit: brief}},
	{name: "c1", title: "P=1, 1 connection, 1,000 keys", work: drive{clients: 1, pipeline: 1, keys: 1000, requests: 100_000}},
	{name: "c5000", title: "P=1, 5,000 connections, 1,000 keys", work: drive{clients: 5000, pipeline: 1, keys: 1000, requests: 400_000}},
	{name: "tls-p1", title: "TLS, P=1, 50 connections, 1,000 keys", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, tls: true}},
	{name: "tls-p16", title: "TLS, P=16, 50 connections, 1,000 keys", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 1_600_000, tls: true}},
	{name: "keys-1m-16", title: "1M keys of 16 bytes", work: fill{keys: 1_000_000, keyLen: 16}},
	{name: "keys-take-1m-16", title: "1M keys of 16 bytes, CL.TAKE, one gcra each", work: fill{keys: 1_000_000, keyLen: 16, take: true}},
	{name: "keys-1m-40", title: "1M keys of 40 bytes", work: fill{keys: 1_000_000, keyLen: 40}, once: true, big: true},
	{name: "keys-10m-16", title: "10M keys of 16 bytes", work: fill{keys: 10_000_000, keyLen: 16}, once: true, big: true},
	{name: "keys-10m-40", title: "10M keys of 40 bytes", work: fill{keys: 10_000_000, keyLen: 40}, once: true, big: true},
	{name: "idle-10k", title: "10,000 idle connections", work: idle{connections: 10_000}, once: true},
	{name: "aof-off-p1", title: "P=1, append-only file off", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, fsync: noFile}},
	{name: "aof-off-p16", title: "P=16, append-only file off", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000, fsync: noFile}},
	{name: "aof-everysec-p1", title: "P=1, append-only file everysec", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, fsync: "everysec"}},
	{name: "aof-everysec-p16", title: "P=16, append-only file everysec", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000, fsync: "everysec"}},
	{name: "aof-always-p1", title: "P=1, append-only file always", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, fsync: "always"}},
	{name: "aof-always-p16", title: "P=16, append-only file always", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000, fsync: "always"}},
	{name: "aof-written-1k", title: "everysec, 1M calls on 1,000 keys", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 1_000_000, fsync: "everysec"}, once: true},
	{name: "aof-written-1m", title: "everysec, 1M calls on 1M keys", work: drive{clients: 50, pipeline: 16, keys: 1_000_000, requests: 1_000_000, fsync: "everysec"}, once: true},
	{name: "save-1m", title: "1M keys", work: save{keys: 1_000_000}},
	{name: "take-gcra-p1", title: "CL.TAKE, gcra, P=1", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, question: &perMinute}},
	{name: "take-gcra-p16", title: "CL.TAKE, gcra, P=16", work: taking(perMinute)},
	{name: "take-gcra-p128", title: "CL.TAKE, gcra, P=128", work: drive{clients: 50, pipeline: 128, keys: 1000, requests: 3_840_000, question: &limiter{limits: perMinute.limits}}},
	{name: "take-gcra-p128-1m", title: "CL.TAKE, gcra, P=128, 1M keys", work: drive{clients: 50, pipeline: 128, keys: 1_000_000, requests: 3_840_000, question: &limiter{limits: []string{"30/1h,burst=100"}, passes: true}}},
	{name: "take-gcra-pass-p16", title: "CL.TAKE, gcra, all pass, P=16",
		work: taking(limiter{limits: []string{"1/1m,burst=1000000"}, passes: true,
			script: bucketScript, args: []string{"1000000", "1", "60000000"}})},
	{name: "take-window-p16", title: "CL.TAKE, window, P=16", work: taking(limiter{limits: []string{"30/60s,algo=window"}, script: windowScript, args: []string{"30", "60000"}})},
	{name: "take-slide-p16", title: "CL.TAKE, slide, P=16", work: taking(limiter{limits: []string{"30/60s,algo=slide"}})},
	{name: "take-buckets-p16", title: "CL.TAKE, slide of 6 buckets, P=16", work: taking(limiter{limits: []string{"30/60s,algo=slide,buckets=6"}})},
	{name: "take-log-p16", title: "CL.TAKE, log of 1,000, P=16",
		work: taking(limiter{limits: []string{"1000/1h,algo=log"}, before: 1000, logs: 1000,
			script: logScript, args: []string{"1000", "3600000000"}})},
	{name: "take-log-pass-p16", title: "CL.TAKE, log of 1,000 and more, all pass, P=16",
		work: taking(limiter{limits: []string{"10000/1h,algo=log"}, before: 1000, logs: 1000, passes: true,
			script: logScript, args: []string{"10000", "3600000000"}})},
	{name: "take-three-p16", title: "CL.TAKE, three limits, all pass, P=16",
		work: taking(limiter{limits: []string{"1000000/1m", "1000000/1h", "1000000/1d,algo=window"}, passes: true})},
	{name: "take-costs-p16", title: "CL.TAKE, three limits with costs of their own, all pass, P=16",
		work: taking(limiter{limits: []string{"1000000/1m", "1000000/1h,name=a", "1000000/1d,algo=window,name=b",
			"COST", "2", "OF", "a", "COST", "3", "OF", "b"}, passes: true})},
	{name: "take-plan-costs-p16", title: "CL.TAKE of a policy of three limits with costs of their own, all pass, P=16",
		work: taking(limiter{limits: []string{"@llm", "COST", "2", "OF", "a", "COST", "3", "OF", "b"}, passes: true,
			plan: []string{"llm", "1000000/1m", "1000000/1h,name=a", "1000000/1d,algo=window,name=b"}})},
	{name: "take-four-p16", title: "CL.TAKE, four limits, P=16", work: taking(limiter{limits: []string{"10/1s", "100/1m", "1000/1h", "10000/1d,algo=window"}})},
	{name: "take-four-pass-p16", title: "CL.TAKE, four limits, all pass, P=16", work: taking(limiter{limits: []string{"100000/1s", "1000000/1m", "10000000/1h", "100000000/1d,algo=window"}, passes: true})},
	{name: "take-gcra-always-c1", title: "CL.TAKE, gcra, 1 connection, append-only file always",
		work: drive{clients: 1, pipeline: 1, keys: 2, requests: 8_000, fsync: "always",
			question: &limiter{limits: []string{"1/1m,burst=1000000"}, passes: true}}},
	{name: "take-log-always-c1", title: "CL.TAKE, log of 5,000 and more, 1 connection, append-only file always",
		work: drive{clients: 1, pipeline: 1, keys: 2, requests: 8_000, fsync: "always",
			question: &limiter{limits: []string{"10000/1h,algo=log"}, before: 5_000, logs: 5_000, passes: true}}},
	{name: "evalsha-p1", title: "CL.THROTTLE through a script, P=1", work: drive{clients: 50, pipeline: 1, keys: 1000, requests: 400_000, question: &wrapper}},
	{name: "evalsha-p16", title: "CL.THROTTLE through a script, P=16", work: drive{clients: 50, pipeline: 16, keys: 1000, requests: 800_000, question: &wrapper}},
	{name: "save-10m", title: "10M keys", work: save{keys: 10_000_000}, once: true, big: true},
}, countingRows, coreRows, waitingRows, engineRows, checkRows, envoyRows)

// taking is the load of the row p16-1k, with CL.TAKE.
func taking(l limiter) drive {
	return drive{clients: 50, pipeline: 16, keys: 1000, requests: 3_200_000, question: &l}
}

// chooseRows returns the rows that the options leave.
func chooseRows(o options) ([]row, error) {
	only, err := regexp.Compile(o.rows)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, r := range allRows {
		if o.quick && r.big || !only.MatchString(r.name) {
			continue
		}
		if o.quick {
			r.work = r.work.quick()
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no row matches %q", o.rows)
	}
	return rows, nil
}

func rowNames() (names []string) {
	for _, r := range allRows {
		names = append(names, r.name)
	}
	return names
}
