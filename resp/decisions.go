package resp

import (
	"sync/atomic"

	"celld/cell"
	"celld/store"
)

// decisions count what limits have said, for INFO. A call that could take something is allowed or limited, once, however many
// limits and keys it has: CL.TAKE and CL.MTAKE are takes. One that only looks (quantity 0, COST 0, PEEK) or gives back
// (CL.GIVE, a negative quantity) is neither, nor is one that is answered by an error.
//
// They are gathered in a batch, so that 64 decisions cost one addition to shared memory or two. Where replies wait for the
// disk, those of a round are counted when it is written: what could not be is answered by -MISCONF, and is no decision.
type decisions [decisionKinds]int64

type decisionKind int

const (
	throttleAllowed decisionKind = iota
	throttleLimited
	takeAllowed
	takeLimited
	ruleDenied    // of those limited, by a rule
	shadowLimited // what limits with shadow would have said
	shadowAllowed
	decisionKinds
)

// throttle counts a CL.THROTTLE under a limit of this capacity. A rule that denies says 0 in its place; a limit of 0 denies
// all by itself.
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

// take counts a call that could take: as allowed, or as the kind after that.
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
		if limited && c.Decision.Limit == 0 { // which no limit is
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

// decisionCounters are the sums of all batches.
type decisionCounters [decisionKinds]atomic.Int64

func (c *decisionCounters) read() (n decisions) {
	for kind := range c {
		n[kind] = c[kind].Load()
	}
	return n
}

// countDecisions hands over what a batch has decided so far: to INFO, or to its round.
func (s *Session) countDecisions() {
	n := &s.scratch.stats.decided
	if !s.srv.synchronous {
		n.settle(s.srv, nil)
		return
	}
	held := &s.inRound().decided
	for kind := range n {
		held[kind] += n[kind]
	}
	*n = decisions{}
}

// settle counts what was decided, if it is on the disk.
func (n *decisions) settle(srv *Server, err error) {
	if err == nil {
		for kind := range n {
			if n[kind] != 0 {
				srv.stats.decisions[kind].Add(n[kind])
			}
		}
	}
	*n = decisions{}
}
