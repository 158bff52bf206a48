package store

import (
	"bytes"

	"celld/cell"
)

// Call is one limit of a Take.
type Call struct {
	Key      []byte
	Limit    *cell.Literal
	Policy   uint32        // Policy.ID; 0: a literal
	Decision cell.Decision // out: what this limit says by itself

	work
}

// work is what Take knows of a call.
type work struct {
	hash  uint64
	shape uint32
	times int64 // this call and those before it that share its state
	sh    *shard
	n     uint32
	e     *slot // nil: no such key
	tally *tally
	st    cell.State
	was   cell.State // before it was tried

	ruled   bool // a rule has decided
	skip    bool // it changes nothing
	claimed bool // the room for its key
	tried   bool // Decision and st are those of the call taken
	kept    bool // its state has been stored
}

// findTally looks for the call's state among those of its key, and returns how many it has met.
func (c *Call) findTally() (met int) {
	c.tally = nil
	if c.e == nil {
		return 0
	}
	t := &c.sh.tallies
	for n := c.e.firstTally(); n != 0; met++ {
		p := t.at(n)
		if p.is(c.Limit, c.Policy, c.shape) {
			c.tally = p
			return met
		}
		n = p.next
	}
	return met
}

// fetch reads the call's state, carried over to its limit where another one has left it. What is carried has a ring of its
// own, so that a call that is denied changes nothing.
func (c *Call) fetch(nowNS int64) {
	if c.tally == nil {
		c.st = cell.State{}
		return
	}
	c.st = c.sh.tallies.state(c.tally)
	if !c.tally.same(c.Limit, c.shape) {
		c.st.Ring = bytesClone(c.st.Ring)
		old := c.tally.literal()
		c.Limit.Carry(&c.st, &old, nowNS)
	}
}

func bytesClone(ring []uint64) []uint64 {
	if ring == nil {
		return nil
	}
	return append(make([]uint64, 0, len(ring)), ring...)
}

// again sees what the calls before have made of the same key.
func (c *Call) again(before []Call, nowNS int64) {
	for i := range before {
		if b := &before[i]; b.sameKey(c) && b.e != nil {
			c.n, c.e = b.n, b.e
			if c.findTally(); !c.tried {
				c.fetch(nowNS)
			}
			return
		}
	}
}

// putEnd has a call's key end with the last of its limits.
func (c *Call) putEnd() {
	c.sh.putEnd(c.n, c.e, c.sh.limitsEndNS(c.e), c.Key)
}

func (c *Call) sameKey(of *Call) bool { return c.hash == of.hash && bytes.Equal(c.Key, of.Key) }

func (c *Call) sharesState(of *Call) bool {
	if c.Policy != 0 || of.Policy != 0 {
		return c.Policy == of.Policy
	}
	return c.Limit.Slot == of.Limit.Slot
}

// claimedBy reports whether the room of the call's key has been claimed.
func (c *Call) claimedBy(before []Call) bool {
	for i := range before {
		if before[i].claimed && before[i].sameKey(c) {
			return true
		}
	}
	return false
}

// madeBy reports whether one of them has put the call's key.
func (c *Call) madeBy(calls []Call) bool {
	for i := range calls {
		if calls[i].e != nil && calls[i].sameKey(c) {
			return true
		}
	}
	return false
}

// keptBy reports whether one of them has stored something under the call's key.
func (c *Call) keptBy(calls []Call) bool {
	for i := range calls {
		if calls[i].kept && calls[i].sameKey(c) {
			return true
		}
	}
	return false
}

// timesOfAll is how many calls share this one's state.
func (c *Call) timesOfAll(calls []Call) (times int64) {
	for i := range calls {
		if calls[i].sameKey(c) && calls[i].sharesState(c) {
			times++
		}
	}
	return times
}
