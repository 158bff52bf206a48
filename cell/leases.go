package cell

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Lease is what was granted to somebody who has it until he gives it back, or until it ends.
type Lease struct {
	ID      uint64 // at most MaxLeaseID; 0: not known yet, see IdentifyLease
	EndNS   uint64 // Unix ns
	TakenNS uint64 // Unix ns; of a lease in a companion
	Cost    int64
	Bound   bool      // ends with the connection that has it
	Link    bool      // no lease of its own, but 16 bytes of what belongs to the lease before it, in Name
	Name    [2]uint64 // of its name; 0: it has none
}

// MaxLeases is the most leases that a state may hold: 5 MB of them.
const MaxLeases = 1 << 16

// MaxLeaseID is the highest ID, up to which a double is exact.
const MaxLeaseID = 1 << 53

// AddLease adds a lease to a state of leases. FitLeases must have made room.
func AddLease(st *State, l Lease) { leases{st}.add(l) }

// FitLeases makes room in a state of leases for so many more, and returns by how many words the ring has grown.
func FitLeases(st *State, more int) (words int) { return leases{st}.fit(more) }

// Leases is how many leases and links a state of leases has, with those that have ended and are still there.
func Leases(st *State) int {
	r := leases{st}
	if r.first() == 0 {
		return 0
	}
	return r.inUse()
}

// Leased is the sum of the costs of the leases of a state.
func Leased(st *State) int64 {
	r := leases{st}
	return int64(r.sumFrom(r.first()))
}

// FindLease returns the lease of an ID that has not ended.
func FindLease(st *State, id uint64, nowNS int64) (Lease, bool) {
	r := leases{st}
	n := r.find(byID, [2]uint64{id}, r.afterNS(nowNS))
	return r.lease(n), n != 0
}

// FindNamed returns the lease of a name that has not ended.
func FindNamed(st *State, name [2]uint64, nowNS int64) (Lease, bool) {
	r := leases{st}
	n := r.find(byName, name, r.afterNS(nowNS))
	return r.lease(n), n != 0
}

// HighestLease is the highest ID in a state of leases; 0: it has none.
func HighestLease(st *State) (id uint64) {
	for l := range (leases{st}).each {
		id = max(id, l.ID)
	}
	return id
}

// DropLease removes the lease of an ID that has not ended, and its links, and returns it.
func DropLease(st *State, id uint64, nowNS int64) (l Lease, found bool) {
	r := leases{st}
	n := r.find(byID, [2]uint64{id}, r.afterNS(nowNS))
	if l = r.lease(n); n != 0 {
		r.drop(n)
	}
	return l, n != 0
}

// Due reports whether a state of leases has one that has ended.
func Due(st *State, nowNS int64) bool { return NextDue(st) <= nowNS }

// NextDue is when the next lease ends, in Unix ns; math.MaxInt64 if there is none.
func NextDue(st *State) int64 {
	r := leases{st}
	n := r.first()
	if n == 0 {
		return math.MaxInt64
	}
	return int64(min(r.end(n), math.MaxInt64))
}

// DropDue yields the leases that have ended, in any order, and removes all of them.
func DropDue(st *State, nowNS int64) iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		r, now := leases{st}, uint64(nowNS)
		if r.manyUntil(now) {
			r.eachOfRing(now, yield)
		} else {
			for n := r.first(); n != 0 && r.end(n) <= now; n = r.next(n) {
				if !r.isLink(n) && !yield(r.lease(n)) {
					break
				}
			}
		}
		r.dropEnded(nowNS)
	}
}

// manyUntil reports whether some more than a sixteenth of the nodes are leases that have ended by then. To walk through all of them in the
// list would take longer than to look at all nodes in the order of the ring: of 65,536 that came in another order than they end, 17 ms and
// not 2, as each step waits for memory.
func (r leases) manyUntil(now uint64) bool {
	few, n := fewLeases+r.used()/16, r.first()
	for ; n != 0 && r.end(n) <= now && few > 0; n = r.next(n) {
		few--
	}
	return n != 0 && r.end(n) <= now
}

// eachOfRing yields the leases that have ended by then, in the order of the ring. Their costs are what sums do not have of the nodes below:
// to look these up would be as slow as the walk, so each node's sum is taken from the node above it.
func (r leases) eachOfRing(now uint64, yield func(Lease) bool) {
	costs := make([]uint64, r.used()+1)
	for i := range r.used() {
		if n := node(i + 1); r.height(byEnd, n) > 0 {
			costs[n] += r.sum(n)
			costs[r.ref(byEnd, n, above)] -= r.sum(n)
		}
	}
	for i := range r.used() {
		n := node(i + 1)
		if end := r.end(n); r.height(byEnd, n) > 0 && end >= r.st.B && end <= now && !r.isLink(n) && !yield(r.leaseOf(n, costs[n])) {
			return
		}
	}
}

// RenewLease changes when a lease and its links end, in Unix ns, and reports whether the lease was there.
func RenewLease(st *State, id, endNS uint64) bool {
	r := leases{st}
	n := r.find(byID, [2]uint64{id}, st.B)
	if n == 0 {
		return false
	}
	r.leave(n)
	endNS = max(endNS, st.B)
	*r.word(n, endWord) = endNS
	r.enter(n, r.lastUntil(endNS))
	return true
}

// EndBound ends all leases that are bound, as their connections are gone.
func EndBound(st *State) {
	r := leases{st}
	var all []Lease
	some, bound := false, false
	for l := range r.each {
		if !l.Link {
			bound = l.Bound
		}
		if bound {
			l.EndNS = min(l.EndNS, 1)
			some = true
		}
		all = append(all, l)
	}
	if !some {
		return
	}
	slices.SortStableFunc(all, func(a, b Lease) int { return cmp.Compare(a.EndNS, b.EndNS) })
	r.refill(all)
}

func (r leases) shift(ns int64) {
	ended := r.st.B
	if ended != 0 {
		r.st.B = 1
	}
	for i := range r.used() {
		n := node(i + 1)
		*r.word(n, takenWord) = ShiftInstant(*r.word(n, takenWord), ns)
		if end := r.word(n, endWord); *end < ended {
			*end = 0
		} else {
			*end = max(ShiftInstant(*end, ns), r.st.B)
		}
	}
}
