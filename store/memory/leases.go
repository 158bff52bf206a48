package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"celld/cell"
	"celld/cell/lease"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"
)

// Leases are in limit entries. A limit of algo=conc keeps them in its own state. For any other limit, LeaseNS gives the key one more entry:
// the limit's companion, whose Shape is the limit's with Leases set. All leases of a Take have one ID.
//
// The first key of a Take leads to the others: its lease has links, which hold their names. They go where the lease goes: into files, and
// with a key that is renamed.

// nameOf is what is kept of a lease's name: half of its SHA-256. So no client finds a name that is answered with another's lease.
func nameOf(name string) (half [2]uint64) {
	if name == "" {
		return half
	}
	sum := sha256.Sum256([]byte(name))
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// repeat answers a Take whose first key has a lease of the same name: as the first time, and without taking anything.
//
// The caller needs a right to all that the lease holds: the answer tells the ID and, with Bound, the lease ends with the caller.
func (t *take) repeat() (found bool, err error) {
	if t.Mode == cell.Peek || t.ruled || t.Terms == nil || t.Terms.Name == "" {
		return false, nil
	}
	name := nameOf(t.Terms.Name)
	lead := t.first(func(c *call) bool { return !c.Ruled })
	if lead == nil {
		return false, nil
	}
	l, found := lead.leaseNamed(name, t.a)
	if !found {
		return false, nil
	}
	linked, _ := lead.sh.LinkedOf(lead.e, int64(l.ID), t.a.NowNS)
	if err := t.a.May.Reach(linked, true, true); err != nil {
		return false, err
	}
	plain := lease.Lease{Cost: t.cost} // of a limit that takes the cost of the take
	for i := range t.calls {
		c := &t.calls[i]
		if c.Ruled {
			continue
		}
		if l.Cost == 0 { // the first key only leads to the others
			if other, ok := c.leaseNamed(name, t.a); ok && other.ID == l.ID {
				l = other
			}
		}
		if one, ok := c.lease(int64(l.ID), t.a.NowNS); ok && !c.Own && one.Cost > 0 && plain.ID == 0 {
			plain = one
		}
		c.Decision = c.peek(t.a.NowNS, 0)
	}
	if plain.ID == 0 && !slices.ContainsFunc(t.calls, func(c call) bool { return c.Own }) {
		plain = l // of limits that this call does not ask for
	}
	t.Taken.Granted, t.Terms.Lease = plain.Cost, int64(l.ID)
	t.Terms.WaitNS = t.reservedNS(l.ID)
	t.sum()
	return true, nil
}

// reservedNS is how long calls still have to wait for what they have reserved in a lease.
func (t *take) reservedNS(id uint64) (waitNS uint64) {
	nowNS := t.a.NowNS
	for i := range t.calls {
		c := &t.calls[i]
		if c.Ruled || c.Limit.HoldsLeases() {
			continue
		}
		_, p := c.companion()
		if p == nil {
			continue
		}
		st := c.sh.Limits.State(p)
		if l, found := st.Leases().Find(id, nowNS); found {
			waitNS = max(waitNS, max(c.Limit.PassedNS(l.TakenNS), uint64(nowNS))-uint64(nowNS))
		}
	}
	return waitNS
}

// lease is the lease of an ID that holds what was taken from the call's limit.
func (c *call) lease(id, nowNS int64) (l lease.Lease, found bool) {
	p := c.entry
	if !c.Limit.HoldsLeases() {
		_, p = c.companion()
	}
	if p != nil {
		_, l, found = c.sh.FindLease(p, id, nowNS)
	}
	return l, found
}

// leaseNamed is the lease of that name under the call's key: the one with a cost, where there are several.
func (c *call) leaseNamed(name [2]uint64, a store.Access) (l lease.Lease, found bool) {
	if c.e == nil {
		return lease.Lease{}, false
	}
	for p := range c.sh.LimitsOf(c.e) {
		if !p.HoldsLeases() || c.sh.PolicyGone(p) {
			continue
		}
		st := c.sh.Limits.State(p)
		if one, ok := st.Leases().FindNamed(name, a.NowNS); ok && (!found || l.Cost == 0) {
			l, found = one, true
		}
	}
	return l, found
}

// first is the first call of those for which is returns true; nil: there is none.
func (t *take) first(is func(*call) bool) *call {
	for i := range t.calls {
		if is(&t.calls[i]) {
			return &t.calls[i]
		}
	}
	return nil
}

// holding is what a granted take puts into leases. The zero value puts nothing.
type holding struct {
	lead    *call // nil: nothing is held
	own     bool  // the lead's key has leases of its own; else it gets one of no cost, for the ID
	leaseNS int64 // of the terms
	lasts   int64 // ns
	links   [][2]uint64
}

// holds reports whether a call holds a lease.
func (g *holding) holds(c *call) bool { return c.changes && (g.leaseNS > 0 || c.Limit.HoldsLeases()) }

// holding says what a take will hold, once it is known which calls take. The lead is the first call that takes, or the first of its key
// that holds a lease.
func (t *take) holding() holding {
	g := holding{leaseNS: t.leaseNS()}
	g.lasts = g.leaseNS
	var others [][]byte
	for i := range t.calls {
		c := &t.calls[i]
		if !g.holds(c) {
			continue
		}
		if g.leaseNS == 0 {
			g.lasts = max(g.lasts, c.Limit.PeriodNS)
		}
		if g.lead == nil {
			g.lead = t.first(func(c *call) bool { return c.changes })
		}
		if c.sameKey(g.lead) {
			if !g.own {
				g.lead, g.own = c, true
			}
		} else if !c.repeats(t.calls[:i]) {
			others = append(others, c.Key)
		}
	}
	g.links = lease.LinkNames(others)
	return g
}

// repeats reports whether one of the calls that takes has the same key.
func (c *call) repeats(before []call) bool {
	for i := range before {
		if b := &before[i]; b.changes && b.sameKey(c) {
			return true
		}
	}
	return false
}

// companion is the limit of the leases that are taken from a call's limit, and its entry; nil if there is none.
func (c *call) companion() (l cell.Limit, p *table.LimitEntry) {
	l = cell.Limit{Shape: c.Limit.Shape, Params: c.Limit.Params}
	l.Leases = true
	if c.e != nil && c.e.HoldsLimits() {
		p = c.sh.FindLimit(c.e, &l, c.PolicyID(), l.Code())
	}
	return l, p
}

// companionOf reports whether a call puts a lease into its companion.
func (g *holding) companionOf(c *call) bool {
	return g.lead != nil && (c.changes && g.leaseNS > 0 && !c.Limit.HoldsLeases() || c == g.lead && !g.own)
}

// room is how many bytes more a call's companion takes, beside those of the calls before it. It makes the companion's ring in c.before,
// which is not used any more, and the ring of algo=conc in c.st, which call.needs counts.
func (g *holding) room(c *call, before []call, nowNS int64) (bytes int64, err error) {
	more := 1
	if c == g.lead {
		more += len(g.links)
	}
	if c.Limit.HoldsLeases() && c.changes {
		c.Limit.Fit(&c.st, nowNS, 1)
		c.st.Leases().Fit(more)
		if c.st.Leases().Len()+more > lease.Max {
			return 0, store.ErrTooManyLeases
		}
	}
	if !g.companionOf(c) {
		return 0, nil
	}
	for i := range before {
		if b := &before[i]; g.companionOf(b) && b.sameKey(c) && b.sharesState(c) {
			return 0, nil // its lease becomes part of that one
		}
	}
	_, p := c.companion()
	c.before = cell.State{}
	if p != nil {
		c.before = c.sh.Limits.State(p)
		bytes -= c.sh.Limits.Bytes(p)
	}
	c.before.Leases().Fit(more)
	if c.before.Leases().Len()+more > lease.Max {
		return 0, store.ErrTooManyLeases
	}
	return max(0, bytes+table.BytesOf(c.Limit, c.PolicyID(), c.before.Ring)), nil
}

// hold puts what the calls have taken into leases. What is reserved is held from the moment on at which the call may go ahead.
func (t *take) hold(g *holding) {
	now := t.a.NowNS
	from, own := now, lease.Lease{ID: t.of.newID(t.of.WallNS(now) / 1000)}
	if t.Terms != nil {
		from = int64(shard.LaterNS(now, int64(t.Terms.WaitNS)))
		own.Bound, own.Name = t.Terms.Bound, nameOf(t.Terms.Name)
		t.Terms.Lease = int64(own.ID)
	}
	own.ExpiryNS = shard.LaterNS(from, g.lasts)
	for i := range t.calls {
		c := &t.calls[i]
		switch {
		case g.companionOf(c):
			one := own
			if c.changes && g.leaseNS > 0 {
				st := c.sh.Limits.State(c.entry) // after all calls that share it
				one.Cost, one.TakenNS = c.CostOf(t.cost), c.Limit.TakenNS(&st, int64(shard.LaterNS(now, c.bookedNS(t.calls))))
			}
			c.putLease(one)
		case c.changes && c.Limit.HoldsLeases():
			st := c.sh.Limits.State(c.entry)
			c.Limit.IdentifyLease(&st, from, own)
			if g.leaseNS > 0 {
				st.Leases().Renew(own.ID, own.ExpiryNS)
				c.Decision.ResetAfterNS = c.peek(now, 0).ResetAfterNS
			}
		}
	}
	for _, name := range g.links {
		expiry := own.ExpiryNS
		if g.lead.Limit.HoldsLeases() && g.leaseNS == 0 {
			expiry = shard.LaterNS(from, g.lead.Limit.PeriodNS)
		}
		g.lead.putLease(lease.Lease{ID: own.ID, ExpiryNS: expiry, Link: true, Name: name, Bound: own.Bound})
	}
}

// bookedNS is how far ahead a call's limit has counted it. Another limit may make the call wait longer.
func (c *call) bookedNS(calls []call) int64 {
	for i := range calls {
		if b := &calls[i]; b.booked && b.sameKey(c) && b.sharesState(c) {
			return b.aheadNS
		}
	}
	return 0
}

// putLease puts a lease, or a link, where the leases of the call's limit are. The room is claimed already.
func (c *call) putLease(l lease.Lease) {
	t := &c.sh.Limits
	limit, p, own := *c.Limit, c.entry, c.Limit.HoldsLeases()
	if !own {
		if limit, p = c.companion(); p == nil {
			p = c.sh.AddLimit(c.e, &limit, c.PolicyID())
		}
	}
	st := t.State(p)
	if !own && c.before.Ring != nil && len(c.before.Ring) > len(st.Ring) {
		st = c.before
	}
	st.Leases().Add(l)
	t.Keep(p, &limit, limit.Code(), &st)
}

// nextExpiryNS is when the next lease expires that was taken from a call's limit, or shard.NoTimer.
func (c *call) nextExpiryNS() int64 {
	if c.Limit.HoldsLeases() {
		return shard.NoTimer
	}
	_, p := c.companion()
	if p == nil {
		return shard.NoTimer
	}
	st := c.sh.Limits.State(p)
	return st.Leases().NextExpiryNS()
}
