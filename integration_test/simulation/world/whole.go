package world

import (
	"fmt"
	"sync"
	"time"

	"celld/resp/wire"
)

// Calls that change several keys are there as a whole or not at all, whoever looks, and whatever ends the process or the machine. All of
// these counters are incremented together, all of these limits are taken from together, and one of two names leads to a key.

// wholeKeys is how many keys a call changes.
const wholeKeys = 40

func drawWhole(p *plan) {
	if p.engine != noEngine || p.has("crowd") { // which evicts keys one by one
		p.without("whole")
	}
}

func runWhole(w *world) {
	var all sync.WaitGroup
	for n, m := range w.all {
		c := w.caller(fmt.Sprintf("whole %d", n), 170+n)
		c.only = m
		all.Go(func() {
			for range c.rounds(w.plan.calls, w.plan.think+time.Millisecond) {
				c.changeTogether()
				c.seesWhole()
			}
			c.hangUp()
		})
	}
	all.Wait()
}

func (c *caller) changeTogether() {
	switch c.rnd.IntN(4) {
	case 0:
		c.do("EVAL", "for i = 1, ARGV[1] do redis.call('INCR', 'whole:count:' .. i) end", "0", fmt.Sprint(wholeKeys))
	case 1:
		var incr [][]string
		for i := range wholeKeys {
			incr = append(incr, []string{"INCR", fmt.Sprint("whole:count:", i+1)})
		}
		c.exec(incr)
	case 2:
		take := []string{"CL.MTAKE", fmt.Sprint(wholeKeys)}
		for i := range wholeKeys {
			take = append(take, fmt.Sprint("whole:limit:", i+1), "1000/366d,algo=window")
		}
		c.do(take...)
	case 3:
		from := c.rnd.IntN(2)
		c.do("EVAL", "if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then redis.call('SET', KEYS[1], 1) end", "2",
			"whole:name:0", "whole:name:1")
		c.do("RENAME", fmt.Sprint("whole:name:", from), fmt.Sprint("whole:name:", 1-from))
	}
}

// exec does commands in a transaction, which goes in one write: so a connection that ends never leaves the half of it.
func (c *caller) exec(commands [][]string) {
	if !c.connect() {
		return
	}
	raw := wire.AppendCommand(nil, "MULTI")
	for _, words := range commands {
		raw = wire.AppendCommand(raw, words...)
	}
	c.w.event(c.name, "asks for a transaction of %q and %d more", commands[0], len(commands)-1)
	err := c.write(wire.AppendCommand(raw, "EXEC"))
	var value any
	for n := len(commands) + 2; err == nil && n > 0; n-- {
		value, err = readValue(c.reader)
	}
	if c.w.event(c.name, "is answered %v, %v", value, err); err != nil {
		c.hangUp()
	}
}

// seesWhole looks at all of the keys at one instant.
func (c *caller) seesWhole() {
	a := c.do("EVAL", `local counts, limits = {}, {}
		for i = 1, ARGV[1] do
			counts[redis.call('GET', 'whole:count:' .. i) or 'none'] = true
			limits[redis.call('CL.TAKE', 'whole:limit:' .. i, '1000/366d,algo=window', 'PEEK')[3]] = true
		end
		local n = {0, 0}
		for _ in pairs(counts) do n[1] = n[1] + 1 end
		for _ in pairs(limits) do n[2] = n[2] + 1 end
		return {n[1], n[2], redis.call('EXISTS', 'whole:name:0', 'whole:name:1')}`, "0", fmt.Sprint(wholeKeys))
	n, is := a.value.([]any)
	if !is {
		return
	}
	c.w.count("saw whole")
	if n[0] != int64(1) || n[1] != int64(1) || n[2] == int64(2) {
		c.w.wrong("%s: counters that are incremented together have %v values, limits that are taken from together %v, and %v of two names "+
			"lead to one key", c.name, n[0], n[1], n[2])
	}
}
