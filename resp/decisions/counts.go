package decisions

import "celld/cell"

// Counts are how calls were decided. A call that could take something counts once, as allowed or limited, however many limits
// and keys it has: under the limit that binds. CL.TAKE and CL.MTAKE count as takes. A call that only looks (quantity 0, COST 0,
// PEEK), gives back (CL.GIVE, a negative quantity) or gets an error does not count.
//
// A batch gathers its decisions, so 64 decisions cost one or two additions to shared memory. Where replies wait for the disk, a
// round's decisions count when its changes are on the disk. If that fails, its calls get -MISCONF and do not count.
type Counts [kinds]int64

// Kind is a way to decide a call. It is an index of Counts.
type Kind int

// The kinds of decisions.
const (
	ThrottleAllowed Kind = iota
	ThrottleLimited
	TakeAllowed
	TakeLimited
	RuleDenied    // the limited calls that a rule denied
	ShadowLimited // what a limit with shadow would have decided
	ShadowAllowed
	Blocked       // the limited calls whose limit has block=: their key is denied for that long
	PartlyGranted // the allowed calls that got less than they asked for (UPTO)
	kinds
)

// Add adds others.
func (n *Counts) Add(other *Counts) {
	for kind := range n {
		n[kind] += other[kind]
	}
}

// Throttle counts a CL.THROTTLE under a limit of this capacity. A denying rule replaces the capacity in the decision by 0. A limit
// whose own capacity is 0 limits every call without a rule.
func (n *Counts) Throttle(d *cell.Decision, capacity int64) {
	if !d.Limited {
		n[ThrottleAllowed]++
		return
	}
	n[ThrottleLimited]++
	if d.Limit != capacity {
		n[RuleDenied]++
	}
}
