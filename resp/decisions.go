package resp

import (
	"celld/cell"
	"celld/store"
)

// decisions counts how calls were decided. A call that could take something counts once, as allowed or limited, however many limits
// and keys it has: under the limit that binds. CL.TAKE and CL.MTAKE count as takes. A call that only looks (quantity 0, COST 0,
// PEEK), gives back (CL.GIVE, a negative quantity) or gets an error does not count.
//
// A batch gathers its decisions, so 64 decisions cost one or two additions to shared memory. Where replies wait for the disk, a
// round's decisions count when its changes are on the disk. If that fails, its calls get -MISCONF and do not count.
type decisions [decisionKinds]int64

type decisionKind int

const (
	throttleAllowed decisionKind = iota
	throttleLimited
	takeAllowed
	takeLimited
	ruleDenied    // the limited calls that a rule denied
	shadowLimited // what a limit with shadow would have decided
	shadowAllowed
	blocked       // the limited calls whose limit has block=: their key is denied for that long
	partlyGranted // the allowed calls that got less than they asked for (UPTO)
	decisionKinds
)

func (n *decisions) add(other *decisions) {
	for kind := range n {
		n[kind] += other[kind]
	}
}

// throttle counts a CL.THROTTLE under a limit of this capacity. A denying rule replaces the capacity in the decision by 0. A limit
// whose own capacity is 0 limits every call without a rule.
func (n *decisions) throttle(d *cell.Decision, capacity int64) {
	if !d.Limited {
		n[throttleAllowed]++
		return
	}
	n[throttleLimited]++
	if d.Limit != capacity {
		n[ruleDenied]++
	}
}

// decided is what a batch has decided, by the rows that it is to be added to.
//
// The first row stays when the batch is over, as the next one is often under the same: then a batch costs no more than one set of
// counters would.
type decided struct {
	first rowDecisions
	more  []rowDecisions // may have a row twice
}

type rowDecisions struct {
	row *decisionRow
	n   decisions
}

// mostDecided is how many entries a decided has: 20 KB. One that is full counts at once, whatever becomes of its batch.
const mostDecided = 256

func (d *decided) empty() bool { return d.first.n == (decisions{}) && len(d.more) == 0 }

// in returns what is counted in a row, until the next call of in.
func (d *decided) in(row *decisionRow, lane uint8) *decisions {
	if d.first.row == row {
		return &d.first.n
	}
	return d.inMore(row, lane)
}

func (d *decided) inMore(row *decisionRow, lane uint8) *decisions {
	if d.empty() {
		d.first.row = row
		return &d.first.n
	}
	for i := len(d.more) - 1; i >= max(0, len(d.more)-8); i-- {
		if r := &d.more[i]; r.row == row {
			return &r.n
		}
	}
	if len(d.more) == mostDecided {
		d.settle(lane, nil)
	}
	d.more = append(d.more, rowDecisions{row: row})
	return &d.more[len(d.more)-1].n
}

// addAll counts what another has counted.
func (d *decided) addAll(other *decided, lane uint8) {
	if other.first.row != nil {
		d.in(other.first.row, lane).add(&other.first.n)
	}
	for i := range other.more {
		r := &other.more[i]
		d.in(r.row, lane).add(&r.n)
	}
}

// settle adds the decisions to the totals unless err says that they are not on the disk.
func (d *decided) settle(lane uint8, err error) {
	if err == nil {
		d.first.row.add(lane, &d.first.n)
		for i := range d.more {
			r := &d.more[i]
			r.row.add(lane, &r.n)
		}
	}
	d.clear()
}

func (d *decided) clear() {
	d.first.n = decisions{}
	d.more = d.more[:0]
}

// countTake counts a call that could take, and what it was denied for CL.TOP. allowed is its kind if it was allowed; the kind after
// that is for limited calls.
func (s *Session) countTake(b *batch, f *form, r *store.TakeRequest, allowed decisionKind) {
	d, lane, binding := &s.scratch.decided, s.scratch.lane, r.Taken.Binding
	n := d.in(f.limits[binding].row, lane)
	switch {
	case r.Taken.Limited:
		n[allowed+1]++
		c := &r.Calls[binding]
		switch {
		case ruled(r.Calls):
			n[ruleDenied]++
		case c.Limit.BlockNS > 0:
			n[blocked]++
		}
		if binding > 0 && b.row.Keys.Counted { // another key than the first
			s.noteDenied(c.Policy, c.Key, s.srv.store.Hash(c.Key))
		} else {
			s.noteDenied(c.Policy, c.Key, s.hashOf(b, c.Key, r.Hash))
		}
	default:
		n[allowed]++
		if r.UpTo && r.Taken.Granted < r.Cost {
			n[partlyGranted]++
		}
	}
	for i := range r.Calls {
		switch c := &r.Calls[i]; {
		case !c.Limit.Shadow:
		case c.Decision.Limited:
			d.in(f.limits[i].row, lane)[shadowLimited]++
		default:
			d.in(f.limits[i].row, lane)[shadowAllowed]++
		}
	}
}

// ruled reports whether a rule denied one of the calls, of which one was denied.
func ruled(calls []store.Call) bool {
	for i := range calls {
		if calls[i].Decision.Limit == 0 { // only a rule decides so: no limit has capacity 0
			return true
		}
	}
	return false
}

// countDecisions adds the batch's decisions so far to the totals, or to the session's round where replies wait for the disk. Those of a
// visit count when it is stored, as it may have to run again.
func (s *Session) countDecisions() {
	d := &s.scratch.decided
	switch {
	case s.scratch.visit != nil:
		return
	case s.srv.synchronous:
		s.inRound().decided.addAll(d, s.scratch.lane)
		d.clear()
	default:
		d.settle(s.scratch.lane, nil)
	}
}
