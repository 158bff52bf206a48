//go:build linux

package main

import (
	"fmt"
	"strconv"
)

// counter is what a row about counting asks of each key. A plain redis-server counts by INCR where celld has INCREX, and both run a script.
type counter struct {
	own    []string // celld's words, keyWord among them
	script string   // empty: celld gets its own words, and the other INCR
	args   []string // of the script
}

var (
	increments = counter{own: []string{"INCR", keyWord}}
	bounded    = counter{own: []string{"INCREX", keyWord, "UBOUND", "30", "EX", "60", "ENX"}}

	// restarts calls what rate-limit-redis's script calls: INCR, PTTL, and PEXPIRE where a window begins.
	restarts = counter{args: []string{"60000"}, script: `local hits = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left <= 0 then
  redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[1]))
  left = tonumber(ARGV[1])
end
return {hits, left}`}

	// begins calls what the fixed window of limits calls: INCRBY, and EXPIRE where a window begins.
	begins = counter{args: []string{"60", "1"}, script: `local cost = tonumber(ARGV[2])
local hits = redis.call('INCRBY', KEYS[1], cost)
if tonumber(hits) == cost then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return hits`}
)

func (c *counter) fits(p *peer) bool { return p.isCelld() || p.counts() }

func (c *counter) words(p *peer) []string {
	switch {
	case c.script != "":
		return append([]string{"EVALSHA", shaOf(c.script), "1", keyWord}, c.args...)
	case p.counts():
		return increments.own
	}
	return c.own
}

// calls is 0: the keys come with what is measured.
func (c *counter) calls() int { return 0 }

func (c *counter) prepare(_ *bench, s *server, _ int) error { return loadScript(s, c.script) }

// check looks at one key, which must hold a count.
func (c *counter) check(_ *bench, s *server, _ int) error {
	const key = "key:000000000001"
	count, err := ask(s.addr, "GET", key)
	if n, bad := strconv.Atoi(count); err != nil || bad != nil || n < 1 {
		return fmt.Errorf("%s counts %q, %v", key, count, err)
	}
	return nil
}

// counting is the load of the rows of CL.THROTTLE with a counter in its place.
func counting(c *counter, pipeline, requests int) drive {
	return drive{clients: 50, pipeline: pipeline, keys: 1000, requests: requests, question: c}
}

var countingRows = []row{
	{name: "incr-p1", title: "INCR, P=1", work: counting(&increments, 1, 400_000)},
	{name: "incr-p16", title: "INCR, P=16", work: counting(&increments, 16, 3_200_000)},
	{name: "incr-p128", title: "INCR, P=128", work: counting(&increments, 128, 3_840_000)},
	{name: "increx-p1", title: "INCREX, P=1", work: counting(&bounded, 1, 400_000)},
	{name: "increx-p16", title: "INCREX, P=16", work: counting(&bounded, 16, 3_200_000)},
	{name: "increx-p128", title: "INCREX, P=128", work: counting(&bounded, 128, 3_840_000)},
	{name: "count-pttl-p1", title: "a script of INCR and PTTL, P=1", work: counting(&restarts, 1, 400_000)},
	{name: "count-pttl-p16", title: "a script of INCR and PTTL, P=16", work: counting(&restarts, 16, 800_000)},
	{name: "count-incrby-p1", title: "a script of INCRBY, P=1", work: counting(&begins, 1, 400_000)},
	{name: "count-incrby-p16", title: "a script of INCRBY, P=16", work: counting(&begins, 16, 800_000)},
}

var countingGoals = []goal{
	{row: "incr-p1", metric: cpuMicroseconds, peer: "count", atMost: 1},
	{row: "incr-p16", metric: cpuMicroseconds, peer: "count", atMost: 0.4},
	{row: "incr-p128", metric: cpuMicroseconds, peer: "count", atMost: 0.3},
	{row: "increx-p1", metric: cpuMicroseconds, peer: "count", atMost: 1},
	{row: "increx-p16", metric: cpuMicroseconds, peer: "count", atMost: 0.4},
	{row: "increx-p128", metric: cpuMicroseconds, peer: "count", atMost: 0.3},
	{row: "count-pttl-p1", metric: cpuMicroseconds, peer: "count", atMost: 1},
	{row: "count-pttl-p16", metric: cpuMicroseconds, peer: "count", atMost: 1},
	{row: "count-incrby-p1", metric: cpuMicroseconds, peer: "count", atMost: 1},
	{row: "count-incrby-p16", metric: cpuMicroseconds, peer: "count", atMost: 1},
}
