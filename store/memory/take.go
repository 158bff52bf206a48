package memory

import (
	"math/bits"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
)

// takeAny answers a request of any calls and modes. The cost is not negative. It returns true if the request waits: then it belongs to a
// line.
func (s *takes) takeAny(r *store.TakeRequest, a store.Access, by caller) (waits bool) {
	t, locks := s.begin(r)
	defer s.end(t)
	t.own = shard.Prepaid{Store: s.Shards, Shard: t.calls[0].sh}
	err := t.own.Run(locks, a.NowNS, func() error { return t.decide(a, &t.own, by) })
	if err == errWaits {
		return true
	}
	r.Err = err
	return false
}

// decide is Take under the locks. It first asks each limit, then claims room for what will change, and then changes it. So nothing can
// fail halfway. After ErrNoRoom it is called again, once paid has the room. After errWaits the request belongs to a line.
func (t *take) decide(a store.Access, paid *shard.Prepaid, by caller) error {
	t.a, t.paid, t.from = a, paid, by
	err := t.plan()
	if err != nil {
		t.Taken = store.Taken{}
	}
	return err
}

func (t *take) plan() error {
	if err := t.checkTerms(); err != nil {
		return err
	}
	if err := t.load(); err != nil {
		return err
	}
	if found, err := t.repeat(); found || err != nil {
		return err
	}
	if t.Mode == cell.Force && !t.ruled && !t.holds() {
		return store.ErrTooMuch
	}
	t.judge()
	if err := t.delay(); err != nil {
		return err
	}
	if err := t.change(); err != nil {
		return err
	}
	t.answer()
	return nil
}

// checkTerms says what is wrong with the terms.
func (t *take) checkTerms() error {
	if t.Terms == nil {
		return nil
	}
	t.Terms.Lease, t.Terms.WaitNS, t.Terms.PassNS = 0, 0, 0
	conc := false
	for i := range t.calls {
		conc = conc || t.calls[i].Limit.HoldsLeases()
	}
	switch {
	case !conc && t.Terms.LeaseNS <= 0 && (t.Terms.Bound || t.Terms.Name != ""):
		return store.ErrNoLease
	case t.Terms.Mode == store.Reserve && !t.bookable():
		return store.ErrNotBookable
	}
	return nil
}

// load looks up the states, and asks the rules.
func (t *take) load() error {
	t.Taken, t.cost, t.behind, t.booked, t.paused = store.Taken{}, t.Cost, false, false, false
	ruled, denied := t.of.HasRules(), false
	for i := range t.calls {
		c := &t.calls[i]
		c.leases = t.leaseNS() > 0 && !c.Limit.HoldsLeases()
		if c.paused = nil; ruled && t.rule(c) {
			denied = denied || c.Decision.Limited
			continue
		}
		if err := c.load(t.calls[:i], len(t.calls), t.a); err != nil {
			return err
		}
		if c.idle = c.CostOf(t.Cost) == 0 && (c.Own || t.Mode != cell.Peek); c.idle {
			c.look(t.a.NowNS)
			continue
		}
		if c.ahead = c.sh.LineOf(c.Call); c.ahead != nil && (t.Mode == cell.Force || t.from.first(c.ahead)) {
			c.ahead = nil
		}
		t.behind = t.behind || c.ahead != nil
	}
	t.ruled = denied
	return nil
}

// rule decides on a call by a rule. It returns false if none does, also for a call that goes on waiting while a rule pauses it.
func (t *take) rule(c *call) bool {
	r := c.Rule(t.of.Set, t.a.NowNS)
	if r == nil {
		return false
	}
	if waits := t.from.waiter != nil || t.Terms != nil && t.Terms.Mode == store.Wait; r.Pause && waits && t.Mode == cell.Take {
		c.paused, t.paused = r, true
		return false
	}
	c.Decision, c.Ruled = r.Decision(c.Limit.Capacity(), t.a.NowNS), true
	return true
}

// holds reports whether all states can hold a take that is forced. A limit with shadow never makes it an error.
func (t *take) holds() bool {
	for i := range t.calls {
		if c := &t.calls[i]; !c.Ruled && !c.Limit.Shadow && !c.holds(c.total(t.cost), t.a.NowNS) {
			return false
		}
	}
	return true
}

// judge decides on the calls, and denies the take if one of them denies. Calls of a take that cannot be denied are decided by change.
func (t *take) judge() {
	if t.UpTo && t.Mode == cell.Take {
		t.cost = t.upTo()
	}
	if !t.ruled && (t.Mode == cell.Force || t.Mode == cell.Take && !t.behind && !t.paused && t.try()) {
		return
	}
	for i := range t.calls {
		c := &t.calls[i]
		if c.paused != nil {
			c.Decision, c.Ruled = c.paused.Decision(c.Limit.Capacity(), t.a.NowNS), true
		}
		if c.Ruled || c.idle {
			t.Taken.Limited = t.Taken.Limited || c.Decision.Limited
			continue
		}
		c.Decision = c.peek(t.a.NowNS, c.total(t.cost))
		if c.ahead != nil {
			c.standBehind(t.a.NowNS, t.cost)
		}
		t.Taken.Limited = t.Taken.Limited || c.Decision.Limited && !c.Limit.Shadow
	}
}

// try takes all calls in their copies of the states. It returns false, and changes nothing, if one does not pass or has no copy that can be
// changed. So a call that passes is decided once and not twice: with four limits it takes 0.92 µs and not 1.30 (redis-benchmark, P=16).
func (t *take) try() bool {
	for i := range t.calls {
		if c := &t.calls[i]; !c.Ruled && !c.idle && !c.try(t.a.NowNS, t.cost) {
			for j := range t.calls[:i] {
				if b := &t.calls[j]; b.tried {
					b.st, b.tried = b.before, false
				}
			}
			return false
		}
	}
	return true
}

// upTo is the cost that all calls allow, from 1 to the requested one.
func (t *take) upTo() int64 {
	most := t.Cost
	for i := range t.calls {
		if c := &t.calls[i]; !c.Limit.Shadow && !c.Ruled {
			d, all := c.peek(t.a.NowNS, 1), c.whole(t.calls)
			if all.times > 0 {
				most = min(most, (d.Remaining-all.owns)/all.times)
			}
		}
	}
	return max(most, 1)
}

// change stores what the calls lead to.
func (t *take) change() error {
	t.markChanges()
	g := t.holding()
	more, err := t.needs(&g)
	if err != nil {
		return err
	}
	if !t.paid.Claim(more) {
		return shard.ErrNoRoom
	}
	t.store()
	if g.lead != nil {
		t.hold(&g)
	}
	for i := range t.calls {
		if c := &t.calls[i]; c.stores() && !c.storedBy(t.calls[i+1:]) {
			c.settle(c.calledBy(t.calls), t.a.NowNS)
		}
	}
	return nil
}

// markChanges notes which calls change what. If all are granted, they take, except shadow limits that would deny. If they are denied,
// those that denied and have block= are blocked. States that were carried over are stored.
func (t *take) markChanges() {
	for i := range t.calls {
		c := &t.calls[i]
		c.booked = t.booked && c.books(t.calls[i+1:])
		c.changes, c.blocks, c.adopts = false, false, false
		limited := t.Mode == cell.Take && c.Decision.Limited
		switch {
		case c.booked && c.ahead == nil:
			c.changes = true
		case c.Ruled || c.idle || t.Mode == cell.Peek:
		case !t.Taken.Limited && !limited:
			c.changes = true
		case limited && (t.Taken.Limited || c.Limit.Shadow) && c.mayBlock(t.a.NowNS):
			c.blocks = true
		default:
			c.adopts = c.carried
		}
	}
}

// needs is the room that the changes take.
func (t *take) needs(g *holding) (more shard.Need, err error) {
	for i := range t.calls {
		c := &t.calls[i]
		if !c.stores() {
			continue
		}
		if g.lead != nil {
			bytes, err := g.room(c, t.calls[:i], t.a.NowNS)
			if err != nil {
				return shard.Need{}, err
			}
			more.Bytes += bytes
		}
		cost := int64(0)
		if c.changes && !c.tried { // else it needs no more room, and counting all sharers takes a while
			all := c.whole(t.calls)
			cost = all.total(t.cost)
		}
		more.Add(c.needs(t.calls[:i], cost, t.a.NowNS))
	}
	return more, nil
}

// store stores the states.
func (t *take) store() {
	for i := range t.calls {
		c := &t.calls[i]
		if !c.stores() {
			continue
		}
		cost := c.CostOf(t.cost)
		if t.Taken.Limited || c.booked { // as judge has asked: nobody has taken before it
			cost = c.total(t.cost)
		}
		c.change(t.calls[:i], cost, t.Mode, t.a.NowNS)
	}
}

// answer sets what is taken, and what the caller has to wait for.
func (t *take) answer() {
	if t.booked {
		t.answerBooked()
	}
	if t.Mode != cell.Peek && !t.Taken.Limited {
		t.Taken.Granted = t.cost
		if t.Terms != nil {
			t.Terms.PassNS = int64(shard.LaterNS(t.a.NowNS, int64(t.Terms.WaitNS)))
		}
	}
	t.sum()
}

// sum sets Binding, RetryAfterNS and ResetAfterNS from those of all calls. Limited is set already.
func (t *take) sum() {
	taken := &t.Taken
	taken.RetryAfterNS = cell.Never
	binding := -1
	for i := range t.calls {
		d := &t.calls[i].Decision
		taken.ResetAfterNS = max(taken.ResetAfterNS, d.ResetAfterNS)
		if c := &t.calls[i]; (c.Limit.Shadow || c.idle) && !c.Ruled && len(t.calls) > 1 {
			continue
		}
		binds := lessLeft
		if taken.Limited {
			binds = waits
		}
		if binding < 0 || binds(d, &t.calls[binding].Decision) {
			binding = i
		}
	}
	if taken.Binding = max(binding, 0); taken.Limited {
		taken.RetryAfterNS = t.calls[taken.Binding].Decision.RetryAfterNS
	}
}

// waits reports whether d is limited, and for longer.
func waits(d, than *cell.Decision) bool {
	return d.Limited && (!than.Limited || d.RetryAfterNS > than.RetryAfterNS)
}

// lessLeft reports whether d has a smaller share left.
func lessLeft(d, than *cell.Decision) bool {
	high, low := bits.Mul64(uint64(d.Remaining), uint64(than.Limit))
	high2, low2 := bits.Mul64(uint64(than.Remaining), uint64(d.Limit))
	return high < high2 || high == high2 && low < low2
}
