package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// Leases are in tallies. A limit of algo=conc has them in its own state. For any other, LeaseNS gives the key one more tally beside
// that of the limit: its companion, whose Shape is the limit's with Leases set. All leases of a Take have one ID.
//
// The first key of a Take leads to the others: its lease has links, which hold their names (links.go). They go where the lease goes: into
// files, and with a key that is renamed.

// check says what is wrong with terms.
func checkTerms(t *store.Terms, calls []call) error {
	conc := false
	for i := range calls {
		conc = conc || calls[i].Limit.HoldsLeases()
	}
	switch {
	case conc && t.LeaseNS > 0:
		return store.ErrLeaseTime
	case !conc && t.LeaseNS <= 0 && (t.Bound || t.Name != ""):
		return store.ErrNoLease
	}
	return nil
}

// leaseNS is how long what is granted is held; 0: it is not, or as long as conc says.
func leaseNS(o *store.TakeOptions) int64 {
	if o.Terms == nil {
		return 0
	}
	return o.Terms.LeaseNS
}

// nameOf is what is kept of a lease's name: half of its SHA-256. So no client finds a name that has another's lease answered.
func nameOf(name string) (half [2]uint64) {
	if name == "" {
		return half
	}
	sum := sha256.Sum256([]byte(name))
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// repeat answers a Take whose name is that of a lease that its first key has: as the first time, and nothing is taken.
//
// The caller needs a right to all that the lease holds, as he is told its ID and, with Bound, ends it when he goes.
func (s *Store) repeat(calls []call, o *store.Terms, a store.Access) (t store.Taken, found bool, err error) {
	if o == nil || o.Name == "" {
		return store.Taken{}, false, nil
	}
	name := nameOf(o.Name)
	lead := leadOf(calls)
	if lead == nil {
		return store.Taken{}, false, nil
	}
	l, found := lead.leaseNamed(name, a)
	if !found {
		return store.Taken{}, false, nil
	}
	linked, _ := lead.sh.linkedOf(lead.e, int64(l.ID), a.NowNS)
	if err := a.May.Reach(linked, true, true); err != nil {
		return store.Taken{}, false, err
	}
	for i := 0; i < len(calls) && l.Cost == 0; i++ { // the first key has leases for the others only
		if c := &calls[i]; c.Ruled {
			continue
		} else if other, ok := c.leaseNamed(name, a); ok && other.ID == l.ID {
			l = other
		}
	}
	for i := range calls {
		if c := &calls[i]; !c.Ruled {
			c.Decision = c.Limit.Decide(&c.st, c.sh.TimeOf(c.Limit, a.NowNS), 0, cell.Peek)
		}
	}
	t.Granted, o.Lease = l.Cost, int64(l.ID)
	o.WaitNS = reservedNS(calls, l.ID, a.NowNS)
	sum(&t, calls)
	return t, true, nil
}

// reservedNS is how long calls still have to wait for what they have reserved in a lease.
func reservedNS(calls []call, id uint64, nowNS int64) (waitNS uint64) {
	for i := range calls {
		c := &calls[i]
		if c.Ruled || c.Limit.HoldsLeases() {
			continue
		}
		_, p := c.companion()
		if p == nil {
			continue
		}
		st := c.sh.Tallies.State(p)
		if l, found := cell.FindLease(&st, id, nowNS); found {
			waitNS = max(waitNS, max(c.Limit.PassedNS(l.TakenNS), uint64(nowNS))-uint64(nowNS))
		}
	}
	return waitNS
}

// leaseNamed is the lease of that name under the call's key: the one with a cost, where there are several.
func (c *call) leaseNamed(name [2]uint64, a store.Access) (l cell.Lease, found bool) {
	if c.e == nil {
		return cell.Lease{}, false
	}
	for p := range c.sh.TalliesOf(c.e) {
		if !p.HoldsLeases() || c.sh.lost(p) {
			continue
		}
		st := c.sh.Tallies.State(p)
		if one, ok := cell.FindNamed(&st, name, a.NowNS); ok && (!found || l.Cost == 0) {
			l, found = one, true
		}
	}
	return l, found
}

// leadOf is the call whose key a lease is under: the first on which no rule has decided.
func leadOf(calls []call) *call {
	for i := range calls {
		if !calls[i].Ruled {
			return &calls[i]
		}
	}
	return nil
}

// grant is what a Take that is granted puts into leases. Its zero value puts nothing.
type grant struct {
	lead   *call // nil: nothing is held
	own    bool  // the lead's key has leases of its own; else it gets one of no cost, for the ID
	lasts  int64 // ns
	others [][]byte
}

// plan says what a Take will hold. It is known which calls will take.
func plan(calls []call, leaseNS int64) (g grant) {
	g.lasts = leaseNS
	for i := range calls {
		if c := &calls[i]; c.changes && (leaseNS > 0 || c.Limit.HoldsLeases()) {
			if leaseNS == 0 {
				g.lasts = max(g.lasts, c.Limit.PeriodNS)
			}
			if g.lead == nil {
				g.lead = firstThatTakes(calls)
			}
		}
	}
	if g.lead == nil {
		return g
	}
	for i := range calls {
		c := &calls[i]
		if !c.changes || leaseNS == 0 && !c.Limit.HoldsLeases() {
			continue
		}
		if c.sameKey(g.lead) {
			if !g.own {
				g.lead, g.own = c, true
			}
		} else if !c.repeats(calls[:i]) {
			g.others = append(g.others, c.Key)
		}
	}
	return g
}

func firstThatTakes(calls []call) *call {
	for i := range calls {
		if calls[i].changes {
			return &calls[i]
		}
	}
	return nil
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

// companion is the limit of the leases that are taken from a call's limit, and their tally, nil if there is none.
func (c *call) companion() (l cell.Limit, p *table.Tally) {
	l = cell.Limit{Shape: c.Limit.Shape, Params: c.Limit.Params}
	l.Leases = true
	if c.e != nil && c.e.HoldsLimits() {
		p = c.sh.FindTally(c.e, &l, c.Policy, l.Code())
	}
	return l, p
}

// companionOf reports whether a call puts a lease into its companion.
func (g *grant) companionOf(c *call, leaseNS int64) bool {
	return g.lead != nil && (c.changes && leaseNS > 0 || c == g.lead && !g.own)
}

// room is what a call's companion takes more, beside those of the calls before it. It makes its ring, in c.before, which has served, and
// the ring of algo=conc in c.st, of which Call.needs knows.
func (g *grant) room(c *call, before []call, links int, leaseNS, nowNS int64) (bytes int64, err error) {
	more := 1
	if c == g.lead {
		more += links
	}
	if c.Limit.HoldsLeases() && c.changes {
		c.Limit.Fit(&c.st, nowNS)
		cell.FitLeases(&c.st, more)
		if cell.Leases(&c.st)+more > cell.MaxLeases {
			return 0, store.ErrTooManyLeases
		}
	}
	if !g.companionOf(c, leaseNS) {
		return 0, nil
	}
	for i := range before {
		if b := &before[i]; g.companionOf(b, leaseNS) && b.sameKey(c) && b.sharesState(c) {
			return 0, nil // its lease becomes part of that one
		}
	}
	_, p := c.companion()
	c.before = cell.State{}
	if p != nil {
		c.before = c.sh.Tallies.State(p)
		bytes -= c.sh.Tallies.Bytes(p)
	}
	cell.FitLeases(&c.before, more)
	if cell.Leases(&c.before)+more > cell.MaxLeases {
		return 0, store.ErrTooManyLeases
	}
	return max(0, bytes+table.TallyBytes+table.BytesOfRing(c.before.Ring)), nil
}

// hold puts what the calls have taken into leases, after they have taken it, and returns their ID. What is reserved is held from the
// moment on at which the call may go ahead.
func (s *Store) hold(g *grant, calls []call, cost int64, o *store.TakeOptions, links [][2]uint64, a store.Access) int64 {
	lease, now := cell.Lease{ID: s.newID(s.WallNS(a.NowNS) / 1000)}, a.NowNS
	if o.Terms != nil {
		a.NowNS = int64(laterNS(a.NowNS, int64(o.Terms.WaitNS)))
		lease.Bound, lease.Name = o.Terms.Bound, nameOf(o.Terms.Name)
	}
	lease.EndNS = laterNS(a.NowNS, g.lasts)
	for i := range calls {
		c := &calls[i]
		switch {
		case g.companionOf(c, leaseNS(o)):
			one := lease
			if c.changes && leaseNS(o) > 0 {
				st := c.sh.Tallies.State(c.tally) // after all calls that share it
				one.Cost, one.TakenNS = cost, c.Limit.TakenNS(&st, int64(laterNS(now, c.bookedNS(calls))))
			}
			c.putLease(one)
		case c.changes && c.Limit.HoldsLeases():
			st := c.sh.Tallies.State(c.tally)
			c.Limit.IdentifyLease(&st, a.NowNS, lease)
		}
	}
	for _, name := range links {
		end := lease.EndNS
		if g.lead.Limit.HoldsLeases() {
			end = laterNS(a.NowNS, g.lead.Limit.PeriodNS)
		}
		g.lead.putLease(cell.Lease{ID: lease.ID, EndNS: end, Link: true, Name: name, Bound: lease.Bound})
	}
	return int64(lease.ID)
}

// bookedNS is how far ahead a call's limit has counted it. Another limit may have the call wait longer.
func (c *call) bookedNS(calls []call) int64 {
	for i := range calls {
		if b := &calls[i]; b.booked && b.sameKey(c) && b.sharesState(c) {
			return b.aheadNS
		}
	}
	return 0
}

// putLease puts a lease, or a link, where the leases of the call's limit are. There is room.
func (c *call) putLease(lease cell.Lease) {
	t := &c.sh.Tallies
	l, p, own := *c.Limit, c.tally, c.Limit.HoldsLeases()
	if !own {
		if l, p = c.companion(); p == nil {
			p = c.sh.AddTally(c.e, c.Policy)
		}
	}
	st, had := t.State(p), t.Bytes(p)
	if !own && c.before.Ring != nil && len(c.before.Ring) > len(st.Ring) {
		st = c.before
	}
	cell.AddLease(&st, lease)
	t.Keep(p, &l, l.Code(), &st)
	c.sh.releaseBytes(had - t.Bytes(p))
}

// laterNS is so many ns from now, or the last instant that a file can have.
func laterNS(nowNS, ns int64) uint64 { return uint64(nowNS + min(ns, math.MaxInt64-nowNS)) }

// leased reports whether a key has leases that have not ended. Such a key is not evicted.
func (sh *shard) leased(e *table.Slot, nowNS int64) bool {
	for p := range sh.TalliesOf(e) {
		if p.HoldsLeases() && sh.TallyEndNS(p) > uint64(nowNS) {
			return true
		}
	}
	return false
}

// withoutLeases are the limits without the leases, which belong to one key.
func withoutLeases(l store.Limits) (kept store.Limits) {
	for i := range l {
		if !l[i].Limit.HoldsLeases() {
			kept = append(kept, l[i])
		}
	}
	return kept
}

// linkedOf are the keys that a lease leads to. found is false if there is none that has not ended.
func (sh *shard) linkedOf(e *table.Slot, id, nowNS int64) (names [][]byte, found bool) {
	for p := range sh.TalliesOf(e) {
		if p.HoldsLeases() {
			st := sh.Tallies.State(p)
			links, has := cell.Links(&st, uint64(id), nowNS)
			keys, _ := cell.NamesIn(links)
			names, found = append(names, keys...), found || has
		}
	}
	return names, found
}
