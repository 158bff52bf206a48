package lease

// Set is the leases of a state. It is a view: the state owns the words.
type Set struct {
	least *uint64   // what expires before that is gone
	ring  *[]uint64 // the words
}

// SetIn is the Set in these words. Their zero value is an empty Set.
func SetIn(least *uint64, words *[]uint64) Set { return Set{least, words} }

// The ring begins with ringHead words. Then come leaseWords for each node: a lease, or one of its links. Node 0 is none.
const (
	rootsWord = 0 // the roots of the trees
	countWord = 1 // the nodes that were ever used, those in use, and the first that is free
	totalWord = 2 // the sum of all costs
	ringHead  = 4 // the last word names the first and the last lease, as it is where the chainWord of node 0 would be

	leaseWords = 10
)

// The words of a node. Two words from nameWord on are its name, and three from treeWord on are its places in the trees.
const (
	expiryWord = 0
	sumWord    = 1 // of its costs and those of all nodes below it in the tree by expiry
	idWord     = 2 // ID<<2 | isLink | isBound
	takenWord  = 3
	nameWord   = 4
	treeWord   = 6
	chainWord  = 9 // of a lease: the next, the one before it, and its first link; of a link and of a free node: the next

	isBound, isLink = 1, 2
)

// node is the number of a node in the ring; 0: none.
type node uint32

// Numbers of nodes take refBits each. Those in a chainWord begin at these bits.
const (
	refBits = 17
	refMask = 1<<refBits - 1

	nextAt, previousAt, linkAt = 0, refBits, 2 * refBits
)

// words are those of a node.
func (s Set) words(n node) *[leaseWords]uint64 {
	return (*[leaseWords]uint64)((*s.ring)[ringHead+(int(n)-1)*leaseWords:])
}

// word is one of them. With words(n)[word] the trees would take 1.3 times as long.
func (s Set) word(n node, word int) *uint64 {
	return &(*s.ring)[ringHead+(int(n)-1)*leaseWords+word]
}

func (s Set) expiry(n node) uint64 { return *s.word(n, expiryWord) }
func (s Set) id(n node) uint64     { return *s.word(n, idWord) >> 2 }
func (s Set) isLink(n node) bool   { return *s.word(n, idWord)&isLink != 0 }
func (s Set) name(n node) [2]uint64 {
	return [2]uint64{*s.word(n, nameWord), *s.word(n, nameWord+1)}
}

// next, previous and firstLink are those of a lease. The first of all is next(0), the last is previous(0).
func (s Set) next(n node) node      { return s.chained(n, nextAt) }
func (s Set) previous(n node) node  { return s.chained(n, previousAt) }
func (s Set) firstLink(n node) node { return s.chained(n, linkAt) }

func (s Set) chained(n node, at int) node {
	if *s.ring == nil {
		return 0
	}
	return node(*s.word(n, chainWord) >> at & refMask)
}

func (s Set) chain(n node, at int, to node) {
	word := s.word(n, chainWord)
	*word = *word&^(refMask<<at) | uint64(to)<<at
}

func (s Set) used() int  { return s.count(0) }
func (s Set) inUse() int { return s.count(1) }
func (s Set) free() node { return node(s.count(2)) }

func (s Set) count(nth int) int {
	if *s.ring == nil {
		return 0
	}
	return int((*s.ring)[countWord] >> (nth * refBits) & refMask)
}

func (s Set) setCounts(used, inUse int, free node) {
	(*s.ring)[countWord] = uint64(used) | uint64(inUse)<<refBits | uint64(free)<<(2*refBits)
}

func (s Set) capacity() int { return max(0, len(*s.ring)-ringHead) / leaseWords }

// clear removes all leases.
func (s Set) clear() {
	*s.least = 0
	clear((*s.ring)[:min(ringHead, len(*s.ring))])
}

// take returns a node that is free. There must be one: see Fit.
func (s Set) take() (n node) {
	if n = s.free(); n != 0 {
		s.setCounts(s.used(), s.inUse()+1, s.next(n))
		return n
	}
	s.setCounts(s.used()+1, s.inUse()+1, 0)
	return node(s.used())
}

// first is the lease that expires first, 0 if there is none.
func (s Set) first() node { return s.expiringFrom(*s.least) }

// liveFrom is the earliest expiry of a lease that has not expired.
func (s Set) liveFrom(nowNS int64) uint64 { return max(*s.least, uint64(nowNS)+1) }

// expiringFrom is the first lease that expires no sooner, 0 if there is none.
func (s Set) expiringFrom(expiry uint64) node {
	n := s.next(0)
	if n != 0 && s.expiry(n) < expiry && s.hasTrees() {
		return s.seek(byExpiry, key{expiry: expiry})
	}
	for n != 0 && s.expiry(n) < expiry {
		n = s.next(n)
	}
	return n
}

// lastUntil is the last lease that expires no later, 0 if there is none.
func (s Set) lastUntil(expiry uint64) node {
	if n := s.previous(0); n == 0 || s.expiry(n) <= expiry {
		return n
	}
	return s.previous(s.expiringFrom(expiry + 1))
}

// find is the first lease of this ID, or of this name, that expires no sooner than least; 0: there is none.
func (s Set) find(t tree, of [2]uint64, least uint64) node {
	if of == [2]uint64{} {
		return 0
	}
	if s.hasTrees() {
		if n := s.seek(t, key{of, least}); n != 0 && s.key(t, n).of == of {
			return n
		}
		return 0
	}
	n := s.expiringFrom(least)
	for n != 0 && !s.is(t, n, of) {
		n = s.next(n)
	}
	return n
}

func (s Set) is(t tree, n node, of [2]uint64) bool {
	if t == byID {
		return *s.word(n, idWord)&^isBound == of[0]<<2 // and no link
	}
	return s.name(n) == of && !s.isLink(n)
}

// sumFrom is the sum of the costs from a lease on; of none it is 0.
func (s Set) sumFrom(n node) uint64 {
	if n == 0 {
		return 0
	}
	return (*s.ring)[totalWord] - s.sumBefore(n)
}

// sumBefore is the sum of the costs of all leases before this one.
func (s Set) sumBefore(n node) (sum uint64) {
	before := s.previous(n)
	if before != 0 && s.hasTrees() {
		return s.treeBefore(n)
	}
	for ; before != 0; before = s.previous(before) {
		sum += s.cost(before)
	}
	return sum
}

// withSum is the lease at which the costs from the first of all on reach sum. They do.
func (s Set) withSum(sum uint64) node {
	if s.hasTrees() {
		return s.treeWithSum(sum)
	}
	n := s.next(0)
	for ; sum > s.cost(n); n = s.next(n) {
		sum -= s.cost(n)
	}
	return n
}

func (s Set) lease(n node) Lease {
	if n == 0 {
		return Lease{}
	}
	return s.leaseOf(n, s.cost(n))
}

// leaseOf is lease for a caller who knows the cost.
func (s Set) leaseOf(n node, cost uint64) Lease {
	flags := *s.word(n, idWord) & 3
	return Lease{
		ID: s.id(n), ExpiryNS: s.expiry(n), TakenNS: *s.word(n, takenWord), Cost: int64(cost),
		Bound: flags&isBound != 0, Link: flags&isLink != 0, Name: s.name(n),
	}
}

// each yields the leases, in the order of expiry, and behind each its links.
func (s Set) each(yield func(Lease) bool) {
	for n := s.first(); n != 0; n = s.next(n) {
		l := s.lease(n)
		if !yield(l) {
			return
		}
		for link := s.firstLink(n); link != 0; link = s.next(link) {
			if !yield(Lease{ID: s.id(link), ExpiryNS: l.ExpiryNS, Bound: *s.word(link, idWord)&isBound != 0, Link: true,
				Name: s.name(link)}) {
				return
			}
		}
	}
}

// drop removes a lease and its links.
func (s Set) drop(n node) {
	s.leave(n)
	s.chain(n, nextAt, s.firstLink(n))
	gone, last := 1, n
	for link := s.next(n); link != 0; link = s.next(link) {
		gone, last = gone+1, link
	}
	*s.word(n, treeWord+int(byExpiry)) = 0
	s.chain(last, nextAt, s.free())
	s.setCounts(s.used(), s.inUse()-gone, n)
}

// enter puts a lease behind another into the list, and into the trees. leave undoes that.
func (s Set) enter(n, before node) {
	next := s.next(before)
	s.chain(before, nextAt, n)
	s.chain(n, previousAt, before)
	s.chain(n, nextAt, next)
	s.chain(next, previousAt, n)
	(*s.ring)[totalWord] += s.sum(n)
	switch {
	case s.hasTrees():
		s.index(n, byExpiry)
	case s.inUse() > few:
		for n := s.next(0); n != 0; n = s.next(n) {
			s.index(n, byExpiry)
		}
	}
}

func (s Set) leave(n node) {
	cost := s.cost(n)
	s.unindex(n, byExpiry)
	*s.word(n, sumWord) = cost
	(*s.ring)[totalWord] -= cost
	before, next := s.previous(n), s.next(n)
	s.chain(before, nextAt, next)
	s.chain(next, previousAt, before)
}

// addCost adds to a lease's cost. It may add a negative number, as sums wrap.
func (s Set) addCost(n node, cost uint64) {
	(*s.ring)[totalWord] += cost
	s.addSum(n, cost)
}

// append adds a link to a lease. The sumWord of the first is the number of the last.
func (s Set) append(lease, link node) {
	first := s.firstLink(lease)
	if first == 0 {
		first = link
		s.chain(lease, linkAt, link)
	} else {
		s.chain(node(s.sum(first)), nextAt, link)
	}
	*s.word(first, sumWord) = uint64(link)
}

// write puts a lease into a new node.
func (s Set) write(l Lease) node {
	n := s.take()
	words := s.words(n)
	*words = [leaseWords]uint64{expiryWord: l.ExpiryNS, sumWord: uint64(l.Cost), takenWord: l.TakenNS}
	s.identify(n, l)
	return n
}

// identify sets all of a lease except its times and its cost.
func (s Set) identify(n node, l Lease) {
	id := l.ID << 2
	if l.Bound {
		id |= isBound
	}
	if l.Link {
		id |= isLink
	}
	*s.word(n, idWord), *s.word(n, nameWord), *s.word(n, nameWord+1) = id, l.Name[0], l.Name[1]
}

// isIn reports whether a lease belongs in a tree: byID takes those with an ID, and byName those with a name. Links are in no tree.
func (s Set) isIn(t tree, n node) bool {
	return t == byExpiry || !s.isLink(n) && s.key(t, n).of != [2]uint64{}
}

// refill makes leases, which are in the order of expiry, all that there are. There must be room.
func (s Set) refill(all []Lease) {
	s.clear()
	for _, l := range all {
		s.Add(l)
	}
}

// Fit makes room for so many more leases and links: that of leases that are gone, or else a ring of twice the size. It returns by how many
// words the ring has grown.
func (s Set) Fit(more int) (words int) {
	for !s.Fits(more) {
		n := s.next(0)
		if n == 0 || s.expiry(n) >= *s.least {
			break
		}
		s.drop(n)
	}
	if s.Fits(more) {
		return 0
	}
	n := s.inUse()
	ring := make([]uint64, ringHead+max(2*n, n+more)*leaseWords)
	words = len(ring) - len(*s.ring)
	copy(ring, *s.ring)
	*s.ring = ring
	return words
}

// Fits reports whether there is room for so many more.
func (s Set) Fits(more int) bool { return s.inUse()+more <= s.capacity() }
