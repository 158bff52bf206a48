package memory

import (
	"bytes"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"
	"celld/store/policy"
)

// call is a call of a request, and what the store knows of it.
type call struct {
	*store.Call
	hash  uint64
	code  uint32
	times int64 // how many of this call and those before it that share its state take the cost of the take,
	owns  int64 // and what the others of them take by their own
	held  int   // limits that its key will hold with this call and those before it
	sh    *shard.Shard
	n     uint32
	e     *table.Slot       // nil: no such key
	entry *table.LimitEntry // nil: the key does not hold the limit
	st    cell.State

	before  cell.State  // st, before the call was tried
	ahead   *shard.Line // it stands behind those who wait for its state; nil: it does not
	tried   bool        // Decision and st are those of the call taken
	carried bool        // st was carried over from another limit, and is not stored yet
	fitted  bool        // st is that of no entry, with a ring: a second try, after room was found, does not make another

	idle    bool         // it takes nothing, and is not denied
	paused  *policy.Rule // keeps it waiting; nil: none does
	changes bool         // it takes
	blocks  bool         // it is denied, and its key is blocked for that
	booked  bool         // it takes ahead, for all calls that share its state
	aheadNS int64        // how far ahead its own state was booked
	adopts  bool         // it does neither, but what was carried over is kept
	leases  bool         // its key needs a companion of its state
}

// stores reports whether a call leaves another state.
func (c *call) stores() bool { return c.changes || c.blocks || c.adopts }

// load looks up the key and the state of a call. before are the calls before it, and all is how many there are.
func (c *call) load(before []call, all int, a store.Access) error {
	c.times, c.owns, c.held, c.tried = 0, 0, 0, false
	c.add(c)
	met, shares := false, false
	for i := range before {
		b := &before[i]
		if b.Ruled || !b.sameKey(c) {
			continue
		}
		met = true
		c.n, c.e, c.held = b.n, b.e, b.held
		if b.sharesState(c) {
			if b.Limit.Shape != c.Limit.Shape || b.Limit.Params != c.Limit.Params {
				return store.ErrTwoLimits
			}
			c.add(b)
			shares = true
		}
	}
	if !met {
		c.meet(all, a)
	}
	if c.e != nil && !c.e.HoldsLimits() {
		return store.ErrWrongType
	}
	c.findEntry()
	if !shares {
		c.countNew()
	}
	if c.held > store.MaxLimits {
		return store.ErrTooManyLimits
	}
	c.fetch(a.NowNS)
	return nil
}

// add adds what a call takes to what this one and those before it take.
func (c *call) add(b *call) {
	if b.Own {
		c.owns += b.Cost
	} else {
		c.times++
	}
}

// total is what this call and those before it that share its state take, where each without a cost of its own takes cost.
func (c *call) total(cost int64) int64 { return c.owns + cost*c.times }

// meet looks up the call's key. If that would hold too many limits with all calls, meet drops those that are dead.
func (c *call) meet(all int, a store.Access) {
	if c.n, c.e = c.sh.Meet(c.hash, c.Key, a); c.e != nil && !c.sh.ExpireLeases(c.n, c.e, a.NowNS) {
		c.n, c.e = table.NoSlot, nil
	}
	c.sh.CountLookup(c.e)
	if c.e == nil || !c.e.HoldsLimits() {
		return
	}
	if c.held = c.sh.CountLimits(c.e); c.held+all > store.MaxLimits {
		c.sh.Journal.Mark(c.n, c.e)
		c.held = c.sh.RemoveLimits(c.e, func(p *table.LimitEntry) bool {
			return c.sh.EntryEndNS(p) <= uint64(a.NowNS) || c.sh.PolicyGone(p)
		})
		if end := c.sh.LimitsEndNS(c.e); end < c.e.TAT.Load() { // it was that of a policy that is gone
			c.sh.MoveEnd(c.n, c.e, end, c.Key)
		}
	}
}

// countNew counts the states that the key does not hold yet.
func (c *call) countNew() {
	if c.entry == nil {
		c.held++
	}
	if c.leases {
		if _, p := c.companion(); p == nil {
			c.held++
		}
	}
}

// findEntry looks for the call's state among those of its key, which holds limits if it is there.
func (c *call) findEntry() {
	c.entry = nil
	if c.e != nil {
		c.entry = c.sh.FindLimit(c.e, c.Limit, c.PolicyID(), c.code)
	}
}

// fetch reads the call's state, and carries it over if another limit has left it. Any call except a peek then stores it, also one that is
// denied.
func (c *call) fetch(nowNS int64) {
	c.carried = false
	if c.entry == nil {
		if !c.fitted {
			c.st = cell.State{}
		}
		return
	}
	c.st, c.fitted = c.sh.Limits.State(c.entry), false
	if !c.entry.Same(c.Limit, c.code) {
		old := c.sh.LimitOf(c.entry, c.Policy)
		c.Limit.Carry(&c.st, &old, c.sh.TimeOf(&old, nowNS), c.sh.TimeOf(c.Limit, nowNS))
		c.carried = c.sh.LimitEndNS(c.Limit, &c.st) > uint64(nowNS)
	}
	if at := c.sh.TimeOf(c.Limit, nowNS); shard.BlockedTooLong(c.Call, &c.st, at) {
		c.st.BlockedNS = uint64(at + c.Limit.BlockNS)
		c.carried = true
	}
}

// peek is what the call's limit says by its state.
func (c *call) peek(nowNS, cost int64) cell.Decision {
	return c.Limit.Decide(&c.st, c.sh.TimeOf(c.Limit, nowNS), cost, cell.Peek)
}

// look answers a call that is idle.
func (c *call) look(nowNS int64) {
	c.Decision = c.peek(nowNS, 0)
	c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
}

// holds reports whether the call's state can hold a cost that is forced.
func (c *call) holds(cost, nowNS int64) bool {
	return c.Limit.Holds(&c.st, c.sh.TimeOf(c.Limit, nowNS), cost)
}

// try takes the call in its copy of the state, and reports whether it passes.
func (c *call) try(nowNS, cost int64) bool {
	if c.total(cost) != c.CostOf(cost) || c.Limit.HasRing() { // a ring would not be a copy
		return false
	}
	c.before = c.st
	c.Decision = c.Limit.Decide(&c.st, c.sh.TimeOf(c.Limit, nowNS), c.CostOf(cost), cell.Take)
	if c.tried = !c.Decision.Limited; !c.tried {
		c.st = c.before
	}
	return c.tried
}

func (c *call) sameKey(of *call) bool { return c.hash == of.hash && bytes.Equal(c.Key, of.Key) }

func (c *call) sharesState(of *call) bool {
	if c.Policy != nil || of.Policy != nil {
		return c.PolicyID() == of.PolicyID()
	}
	return c.Limit.Shape == of.Limit.Shape
}

// whole is a call of all that share this one's state.
func (c *call) whole(calls []call) (all call) {
	for i := range calls {
		if calls[i].sameKey(c) && calls[i].sharesState(c) {
			all.add(&calls[i])
		}
	}
	return all
}

// storedBy reports whether one of them stores under the same key.
func (c *call) storedBy(calls []call) bool {
	for i := range calls {
		if b := &calls[i]; b.stores() && b.sameKey(c) {
			return true
		}
	}
	return false
}

// calledBy reports whether one of them takes from the same key, or blocks it.
func (c *call) calledBy(calls []call) bool {
	for i := range calls {
		if b := &calls[i]; (b.changes || b.blocks) && b.sameKey(c) {
			return true
		}
	}
	return false
}

// needs is the room that the call's change takes, beside that of the calls before it. cost is at least what all that share its state
// take. It also makes the call's ring, which goes into the store with the change.
func (c *call) needs(before []call, cost, nowNS int64) (n shard.Need) {
	newKey, newState := c.e == nil, true
	for i := range before {
		if b := &before[i]; b.stores() && b.sameKey(c) {
			newKey = false
			newState = newState && !b.sharesState(c)
		}
	}
	if newKey {
		n = shard.NewKey(len(c.Key))
	}
	if !newState {
		return n
	}
	if c.changes && !c.tried {
		c.Limit.Fit(&c.st, c.sh.TimeOf(c.Limit, nowNS), cost)
		c.fitted = c.entry == nil
	}
	n.Bytes += c.grows()
	return n
}

// grows is how many bytes more the call's state takes than the stored one.
func (c *call) grows() int64 {
	bytes := table.BytesOf(c.Limit, c.PolicyID(), c.st.Ring)
	if c.entry != nil {
		bytes -= c.sh.Limits.Bytes(c.entry)
	}
	return max(0, bytes)
}

// change decides on a call and stores the state. The room is claimed already, and a call that adopts is decided already.
func (c *call) change(before []call, cost int64, mode cell.Mode, nowNS int64) {
	for i := range before {
		b := &before[i]
		if !b.stores() || !b.sameKey(c) {
			continue
		}
		c.n, c.e = b.n, b.e
		if b.sharesState(c) {
			c.entry, c.st = b.entry, b.st
			if c.changes && mode == cell.Take { // it passes together with those before it, though for warmup not after them
				mode = cell.Force
			}
		}
	}
	switch at := c.sh.TimeOf(c.Limit, nowNS); {
	case c.tried || c.adopts:
	case c.booked:
		c.aheadNS = int64(c.Limit.Book(&c.st, at, cost))
		c.Decision = c.Limit.Decide(&c.st, at, 0, cell.Peek)
	case c.ahead != nil: // it may pass by itself, and must not
		c.block(at)
	default:
		c.Decision = c.Limit.Decide(&c.st, at, cost, mode)
	}
	c.keep(nowNS)
}

// mayBlock reports whether a denial of the call blocks its key, which is not blocked.
func (c *call) mayBlock(nowNS int64) bool {
	return c.Limit.BlocksDenied() && c.st.BlockedNS <= uint64(c.sh.TimeOf(c.Limit, nowNS))
}

// block does what a denial does by block=.
func (c *call) block(at int64) {
	block, d := uint64(c.Limit.BlockNS), &c.Decision
	c.st.BlockedNS, c.st.AtFull = uint64(at)+block, false
	d.Blocked, d.RetryAfterNS, d.ResetAfterNS = true, max(d.RetryAfterNS, block), max(d.ResetAfterNS, block)
}

// keep stores a call's state. Call settle when all calls for its key are stored.
func (c *call) keep(nowNS int64) {
	sh := c.sh
	if c.e == nil {
		c.n, c.e = sh.Link(c.hash, c.Key, store.Value{TAT: sh.LimitEndNS(c.Limit, &c.st), HoldsLimits: true}, nowNS)
	}
	had := int64(0)
	if c.entry == nil {
		c.entry = sh.AddLimit(c.e, c.Limit, c.PolicyID())
	} else {
		had = sh.Limits.Bytes(c.entry)
	}
	sh.Limits.Keep(c.entry, c.Limit, c.code, &c.st)
	if q := sh.LineOf(c.Call); q != nil {
		q.Poke(sh.LatestNS)
	}
	sh.ReleaseBytes(had - sh.Limits.Bytes(c.entry))
}

// settle makes the call's key end with the last of its limits, and removes it if that is over. called: a call has taken, or its key was
// blocked, which drops the expiry that an EXPIRE has set.
func (c *call) settle(called bool, nowNS int64) {
	switch end := c.sh.LimitsEndNS(c.e); {
	case end <= uint64(nowNS):
		c.sh.Remove(c.n, c.e)
	case called:
		c.sh.PutEnd(c.n, c.e, end, c.Key)
	default:
		c.sh.MoveEnd(c.n, c.e, end, c.Key)
	}
}
