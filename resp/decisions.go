package resp

import (
	"celld/cell"
	"celld/store"
)

// decisions counts, for INFO, how calls were decided. A call that could take something counts once, as allowed or limited, however
// many limits and keys it has. CL.TAKE and CL.MTAKE count as takes. A call that only looks (quantity 0, COST 0, PEEK), gives back
// (CL.GIVE, a negative quantity) or gets an error does not count.
//
// A batch gathers its decisions, so 64 decisions cost one or two additions to shared memory. Where replies wait for the disk, a
// round's decisions count when its changes are on the disk. If that fails, its calls get -MISCONF and do not count.
type decisions [allKinds]int64

type decisionKind int

const (
	throttleAllowed decisionKind = iota
	throttleLimited
	takeAllowed
	takeLimited
	ruleDenied    // the limited calls that a rule denied
	shadowLimited // what limits with shadow would have decided
	shadowAllowed
	decisionKinds

	policyThrottleAllowed decisionKind = iota - 1 // of CL.THROTTLE by a policy, which INFO adds to the others
	policyThrottleLimited
	allKinds
)

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

// take counts a call that could take. allowed is its kind if it was allowed; the kind after that is for limited calls.
func (n *decisions) take(allowed decisionKind, r *store.TakeRequest) {
	limited := r.Taken.Limited
	if limited {
		n[allowed+1]++
	} else {
		n[allowed]++
	}
	byRule := int64(0)
	for i := range r.Calls {
		c := &r.Calls[i]
		if limited && c.Decision.Limit == 0 { // only a rule decides so: no limit has capacity 0
			byRule = 1
		}
		switch {
		case !c.Limit.Shadow:
		case c.Decision.Limited:
			n[shadowLimited]++
		default:
			n[shadowAllowed]++
		}
	}
	n[ruleDenied] += byRule
}

// decisionCounters are the totals since the start.
type decisionCounters [allKinds]laned

func newDecisionCounters() (c decisionCounters) {
	for kind := range c {
		c[kind] = newLaned()
	}
	return c
}

// read returns them as INFO has them.
func (c *decisionCounters) read() (n decisions) {
	for kind := range c {
		n[kind] = c[kind].Load()
	}
	n[throttleAllowed] += n[policyThrottleAllowed]
	n[throttleLimited] += n[policyThrottleLimited]
	n[policyThrottleAllowed], n[policyThrottleLimited] = 0, 0
	return n
}

// countDecisions adds the batch's decisions so far to the totals, or to the session's round where replies wait for the disk.
func (s *Session) countDecisions() {
	d := &s.scratch.stats.decided
	if !s.srv.synchronous {
		d.settle(s.srv, s.scratch.lane, nil)
		return
	}
	s.inRound().decided.addAll(d)
	d.reset()
}

// settle adds the counts to the totals.
func (n *decisions) settle(srv *Server, lane uint8) {
	for kind := range n {
		if n[kind] != 0 {
			srv.stats.decisions[kind].Add(lane, n[kind])
		}
	}
}
