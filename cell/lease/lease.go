package lease

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Lease is what was granted to somebody until he gives it back, or until it expires.
type Lease struct {
	ID       uint64 // at most MaxID; 0: not known yet, see Identify
	ExpiryNS uint64 // Unix ns
	TakenNS  uint64 // Unix ns; of a lease in a companion
	Cost     int64
	Bound    bool      // it expires with the connection that holds it
	Link     bool      // no lease of its own, but 16 bytes of what belongs to the lease before it, in Name
	Name     [2]uint64 // of its name; 0: it has none
}

// Max is the most leases that a Set may hold: 5 MB of them.
const Max = 1 << 16

// MaxID is the highest ID, up to which a double is exact.
const MaxID = 1 << 53

// mostCost is the highest cost of a lease, and mostSum the highest sum of costs: leases of many windows are held at once.
const (
	mostCost = 1 << 53
	mostSum  = 1 << 62
)

// Len is how many leases and links there are, with those that have expired and are still there.
func (s Set) Len() int {
	if s.first() == 0 {
		return 0
	}
	return s.inUse()
}

// Count is how many leases have not expired. It goes through all of them.
func (s Set) Count(nowNS int64) (n int) {
	for l := s.expiringFrom(s.liveFrom(nowNS)); l != 0; l = s.next(l) {
		n++
	}
	return n
}

// Cost is the sum of the costs of all leases that are there.
func (s Set) Cost() int64 { return int64(s.sumFrom(s.first())) }

// InUse is the sum of the costs of the leases that have not expired.
func (s Set) InUse(nowNS int64) uint64 { return s.sumFrom(s.expiringFrom(s.liveFrom(nowNS))) }

// FallsToNS is when no more than most is in use, in Unix ns, if more is now and nothing is added.
func (s Set) FallsToNS(most uint64) uint64 {
	return s.expiry(s.withSum((*s.ring)[totalWord] - most))
}

// Find returns the lease of an ID that has not expired.
func (s Set) Find(id uint64, nowNS int64) (Lease, bool) {
	n := s.find(byID, [2]uint64{id}, s.liveFrom(nowNS))
	return s.lease(n), n != 0
}

// FindNamed returns the lease of a name that has not expired.
func (s Set) FindNamed(name [2]uint64, nowNS int64) (Lease, bool) {
	n := s.find(byName, name, s.liveFrom(nowNS))
	return s.lease(n), n != 0
}

// HighestID is the highest ID; 0: there is none.
func (s Set) HighestID() (id uint64) {
	for l := range s.each {
		id = max(id, l.ID)
	}
	return id
}

// Add adds a lease behind all others that expire no later. One of the same ID that expires at the same time becomes part of that, and a
// link part of the lease before it. Fit must have made room.
func (s Set) Add(l Lease) {
	l.ExpiryNS = max(l.ExpiryNS, *s.least) // one that would expire before it is added expires now
	last := s.lastUntil(l.ExpiryNS)
	same := last != 0 && s.expiry(last) == l.ExpiryNS && s.id(last) == l.ID && !s.isLink(last)
	l.Cost = min(l.Cost, mostCost, mostSum-s.Cost())
	switch {
	case same && !l.Link:
		l.Cost = min(l.Cost, mostCost-int64(s.cost(last)))
		s.addCost(last, uint64(l.Cost))
	case same:
		s.append(last, s.write(l))
	default:
		s.enter(s.write(l), last)
	}
}

// Identify names the lease that was added without an ID and expires then: the lease gets all of l except its times and its cost. It does
// nothing where there is none.
func (s Set) Identify(expiryNS uint64, l Lease) {
	expiryNS = max(expiryNS, *s.least)
	if n := s.lastUntil(expiryNS); n != 0 && s.expiry(n) == expiryNS && s.id(n) == 0 {
		s.unindex(n, byID)
		s.identify(n, l)
		s.index(n, byID)
	}
}

// Drop removes the lease of an ID that has not expired, and its links, and returns it.
func (s Set) Drop(id uint64, nowNS int64) (l Lease, found bool) {
	n := s.find(byID, [2]uint64{id}, s.liveFrom(nowNS))
	if l = s.lease(n); n != 0 {
		s.drop(n)
	}
	return l, n != 0
}

// MostGiven is how many leases a Give ends at most: 1,024 take 0.2 ms.
const MostGiven = 1 << 10

// Give takes up to n from the leases that expire last, and returns how much that was. A lease with nothing left is removed.
func (s Set) Give(nowNS, n int64) int64 {
	s.Forget(nowNS)
	owed := uint64(n)
	for at, dropped := s.previous(0), 0; at != 0 && s.expiry(at) >= *s.least && owed > 0 && dropped < MostGiven; dropped++ {
		cost, before := s.cost(at), s.previous(at)
		switch {
		case s.isLink(at):
		case cost <= owed:
			owed -= cost
			s.drop(at)
		default:
			s.addCost(at, -owed)
			owed = 0
		}
		at = before
	}
	return n - int64(owed)
}

// Renew changes when a lease and its links expire, in Unix ns, and reports whether the lease was there.
func (s Set) Renew(id, expiryNS uint64) bool {
	n := s.find(byID, [2]uint64{id}, *s.least)
	if n == 0 {
		return false
	}
	s.leave(n)
	expiryNS = max(expiryNS, *s.least)
	*s.word(n, expiryWord) = expiryNS
	s.enter(n, s.lastUntil(expiryNS))
	return true
}

// EndBound lets all leases that are bound expire now, as their connections are gone.
func (s Set) EndBound(nowNS int64) {
	var all []Lease
	some, bound := false, false
	for l := range s.each {
		if !l.Link {
			bound = l.Bound
		}
		if bound {
			l.ExpiryNS = min(l.ExpiryNS, uint64(nowNS))
			some = true
		}
		all = append(all, l)
	}
	if !some {
		return
	}
	slices.SortStableFunc(all, func(a, b Lease) int { return cmp.Compare(a.ExpiryNS, b.ExpiryNS) })
	s.refill(all)
}

// LastExpiryNS is when the last lease expires, in Unix ns; 0: there is none.
func (s Set) LastExpiryNS() uint64 {
	if n := s.previous(0); n != 0 && s.expiry(n) >= *s.least {
		return s.expiry(n)
	}
	return 0
}

// NextExpiryNS is when the next lease expires, in Unix ns; math.MaxInt64 if there is none.
func (s Set) NextExpiryNS() int64 {
	n := s.first()
	if n == 0 {
		return math.MaxInt64
	}
	return int64(min(s.expiry(n), math.MaxInt64))
}

// Forget removes the leases that have expired.
func (s Set) Forget(nowNS int64) {
	if s.expiringFrom(s.liveFrom(nowNS)) == 0 {
		s.clear()
	} else if s.expiry(s.first()) <= uint64(nowNS) {
		*s.least = uint64(nowNS) + 1
	}
}

// DropExpired yields the leases that have expired, in any order, and removes all of them.
func (s Set) DropExpired(nowNS int64) iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		now := uint64(nowNS)
		if s.manyUntil(now) {
			s.eachOfRing(now, yield)
		} else {
			for n := s.first(); n != 0 && s.expiry(n) <= now; n = s.next(n) {
				if !s.isLink(n) && !yield(s.lease(n)) {
					break
				}
			}
		}
		s.Forget(nowNS)
	}
}

// manyUntil reports whether more than a sixteenth of the nodes, and a few, are leases that expire by then. A walk through all of them in
// the list would take longer than a look at all nodes in the order of the ring: with 65,536 that were added in another order than they
// expire, 17 ms and not 2, as each step waits for memory.
func (s Set) manyUntil(now uint64) bool {
	left, n := few+s.used()/16, s.first()
	for ; n != 0 && s.expiry(n) <= now && left > 0; n = s.next(n) {
		left--
	}
	return n != 0 && s.expiry(n) <= now
}

// eachOfRing yields the leases that expire by then, in the order of the ring. A lease costs its node's sum without the sums of the nodes
// below. To look these up would be as slow as the walk, so each node takes its sum off the node above it.
func (s Set) eachOfRing(now uint64, yield func(Lease) bool) {
	costs := make([]uint64, s.used()+1)
	for i := range s.used() {
		if n := node(i + 1); s.height(byExpiry, n) > 0 {
			costs[n] += s.sum(n)
			costs[s.ref(byExpiry, n, above)] -= s.sum(n)
		}
	}
	for i := range s.used() {
		n := node(i + 1)
		at := s.expiry(n)
		if s.height(byExpiry, n) > 0 && at >= *s.least && at <= now && !s.isLink(n) && !yield(s.leaseOf(n, costs[n])) {
			return
		}
	}
}

// Shift moves all instants by shift, which must not change their order. Leases that are gone stay so.
func (s Set) Shift(shift func(ns uint64) uint64) {
	least := *s.least
	if least != 0 {
		*s.least = 1
	}
	for i := range s.used() {
		n := node(i + 1)
		*s.word(n, takenWord) = shift(*s.word(n, takenWord))
		if at := s.word(n, expiryWord); *at < least {
			*at = 0
		} else {
			*at = max(shift(*at), *s.least)
		}
	}
}
