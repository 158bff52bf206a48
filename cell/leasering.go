package cell

// leases are the ring of a state: a list of leases in the order of their ends. Those that end at the same time are in the order in which
// they came. Few leases are looked at one after another. More of them are in trees as well (leasetree.go), and then are found by their end,
// their ID and their name in as many steps as a binary search takes.
//
// Leases that have ended may still lie there. Those that end before State.B are no more: fit takes their room when more is needed, a few
// at a time. So 65,536 leases that end at one instant need not be removed at one instant.
//
// A state of leases is that of an algo=conc, or the companion of another limit's state: the leases that were taken from it. What ends
// there is given back to the limit by GiveBack.
type leases struct{ st *State }

// The ring begins with ringHead words, and then has leaseWords for each node: a lease, or one of its links. Node 0 is none.
const (
	rootsWord = 0 // the roots of the trees
	countWord = 1 // the nodes that were ever used, those in use, and the first that is free
	totalWord = 2 // the sum of all costs
	ringHead  = 4 // the last word has the first and the last lease, as it is where node 0 would have its chainWord

	leaseWords = 10
)

// The words of a node. Its name is the two from nameWord on, and its places in the trees are the three from treeWord on.
const (
	endWord   = 0
	sumWord   = 1 // of its costs and those of all nodes below it in the tree by end
	idWord    = 2 // ID<<2 | isLink | isBound
	takenWord = 3
	nameWord  = 4
	treeWord  = 6
	chainWord = 9 // of a lease: the next, the one before it, and its first link; of a link and of a free node: the next

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
func (r leases) words(n node) *[leaseWords]uint64 {
	return (*[leaseWords]uint64)(r.st.Ring[ringHead+(int(n)-1)*leaseWords:])
}

// word is one of them. With words(n)[word] the trees would take 1.3 times as long.
func (r leases) word(n node, word int) *uint64 {
	return &r.st.Ring[ringHead+(int(n)-1)*leaseWords+word]
}

func (r leases) end(n node) uint64  { return *r.word(n, endWord) }
func (r leases) id(n node) uint64   { return *r.word(n, idWord) >> 2 }
func (r leases) isLink(n node) bool { return *r.word(n, idWord)&isLink != 0 }
func (r leases) name(n node) [2]uint64 {
	return [2]uint64{*r.word(n, nameWord), *r.word(n, nameWord+1)}
}

// next, previous and firstLink are those of a lease. The first of all is next(0), the last is previous(0).
func (r leases) next(n node) node      { return r.chained(n, nextAt) }
func (r leases) previous(n node) node  { return r.chained(n, previousAt) }
func (r leases) firstLink(n node) node { return r.chained(n, linkAt) }

func (r leases) chained(n node, at int) node {
	if r.st.Ring == nil {
		return 0
	}
	return node(*r.word(n, chainWord) >> at & refMask)
}

func (r leases) chain(n node, at int, to node) {
	word := r.word(n, chainWord)
	*word = *word&^(refMask<<at) | uint64(to)<<at
}

func (r leases) used() int  { return r.count(0) }
func (r leases) inUse() int { return r.count(1) }
func (r leases) free() node { return node(r.count(2)) }

func (r leases) count(nth int) int {
	if r.st.Ring == nil {
		return 0
	}
	return int(r.st.Ring[countWord] >> (nth * refBits) & refMask)
}

func (r leases) setCounts(used, inUse int, free node) {
	r.st.Ring[countWord] = uint64(used) | uint64(inUse)<<refBits | uint64(free)<<(2*refBits)
}

func (r leases) capacity() int { return max(0, len(r.st.Ring)-ringHead) / leaseWords }

// clear forgets all leases.
func (r leases) clear() {
	r.st.B = 0
	clear(r.st.Ring[:min(ringHead, len(r.st.Ring))])
}

// take returns a node that is free. There must be one: see fit.
func (r leases) take() (n node) {
	if n = r.free(); n != 0 {
		r.setCounts(r.used(), r.inUse()+1, r.next(n))
		return n
	}
	r.setCounts(r.used()+1, r.inUse()+1, 0)
	return node(r.used())
}

// first is the lease that ends first, 0 if there is none.
func (r leases) first() node { return r.endingFrom(r.st.B) }

// firstAfter is the first lease that has not ended.
func (r leases) firstAfter(nowNS int64) node { return r.endingFrom(r.afterNS(nowNS)) }

// afterNS is the first end of leases that have not ended.
func (r leases) afterNS(nowNS int64) uint64 { return max(r.st.B, uint64(nowNS)+1) }

func (r leases) endingFrom(end uint64) node {
	n := r.next(0)
	if n != 0 && r.end(n) < end && r.hasTrees() {
		return r.seek(byEnd, key{end: end})
	}
	for n != 0 && r.end(n) < end {
		n = r.next(n)
	}
	return n
}

// lastUntil is the last lease that ends no later, 0 if there is none.
func (r leases) lastUntil(end uint64) node {
	if n := r.previous(0); n == 0 || r.end(n) <= end {
		return n
	}
	return r.previous(r.endingFrom(end + 1))
}

// lastEnd is when the last of all ends; 0: there is none.
func (r leases) lastEnd() uint64 {
	if n := r.previous(0); n != 0 && r.end(n) >= r.st.B {
		return r.end(n)
	}
	return 0
}

// find is the lease of this ID, or of this name: of those that end no sooner the first. 0: there is none.
func (r leases) find(t tree, of [2]uint64, end uint64) node {
	if of == [2]uint64{} {
		return 0
	}
	if r.hasTrees() {
		if n := r.seek(t, key{of, end}); n != 0 && r.key(t, n).of == of {
			return n
		}
		return 0
	}
	n := r.endingFrom(end)
	for n != 0 && !r.is(t, n, of) {
		n = r.next(n)
	}
	return n
}

func (r leases) is(t tree, n node, of [2]uint64) bool {
	if t == byID {
		return *r.word(n, idWord)&^isBound == of[0]<<2 // and no link
	}
	return r.name(n) == of && !r.isLink(n)
}

// sumFrom is the sum of the costs from a lease on; of none it is 0.
func (r leases) sumFrom(n node) uint64 {
	if n == 0 {
		return 0
	}
	return r.st.Ring[totalWord] - r.sumBefore(n)
}

// sumBefore is the sum of the costs of all leases before this one.
func (r leases) sumBefore(n node) (sum uint64) {
	before := r.previous(n)
	if before != 0 && r.hasTrees() {
		return r.treeBefore(n)
	}
	for ; before != 0; before = r.previous(before) {
		sum += r.cost(before)
	}
	return sum
}

// withSum is the lease at which the costs from the first of all on reach sum. They do.
func (r leases) withSum(sum uint64) node {
	if r.hasTrees() {
		return r.treeWithSum(sum)
	}
	n := r.next(0)
	for ; sum > r.cost(n); n = r.next(n) {
		sum -= r.cost(n)
	}
	return n
}

func (r leases) lease(n node) Lease {
	if n == 0 {
		return Lease{}
	}
	return r.leaseOf(n, r.cost(n))
}

// leaseOf is lease for a caller who knows the cost.
func (r leases) leaseOf(n node, cost uint64) Lease {
	flags := *r.word(n, idWord) & 3
	return Lease{
		ID: r.id(n), EndNS: r.end(n), TakenNS: *r.word(n, takenWord), Cost: int64(cost),
		Bound: flags&isBound != 0, Link: flags&isLink != 0, Name: r.name(n),
	}
}

// each yields the leases, the first to end first, and behind each its links.
func (r leases) each(yield func(Lease) bool) {
	for n := r.first(); n != 0; n = r.next(n) {
		l := r.lease(n)
		if !yield(l) {
			return
		}
		for link := r.firstLink(n); link != 0; link = r.next(link) {
			if !yield(Lease{ID: r.id(link), EndNS: l.EndNS, Bound: *r.word(link, idWord)&isBound != 0, Link: true, Name: r.name(link)}) {
				return
			}
		}
	}
}

// dropEnded forgets the leases that have ended.
func (r leases) dropEnded(nowNS int64) {
	if r.firstAfter(nowNS) == 0 {
		r.clear()
	} else if r.end(r.first()) <= uint64(nowNS) {
		r.st.B = uint64(nowNS) + 1
	}
}

// drop forgets a lease and its links.
func (r leases) drop(n node) {
	r.leave(n)
	r.chain(n, nextAt, r.firstLink(n))
	gone, last := 1, n
	for link := r.next(n); link != 0; link = r.next(link) {
		gone, last = gone+1, link
	}
	*r.word(n, treeWord+int(byEnd)) = 0
	r.chain(last, nextAt, r.free())
	r.setCounts(r.used(), r.inUse()-gone, n)
}

// add puts a lease behind all others that end no later. One of the same ID that ends at the same time becomes part of that, and a link
// part of the lease before it. There must be room: see fit.
func (r leases) add(l Lease) {
	l.EndNS = max(l.EndNS, r.st.B) // one that would end before it is added ends now
	last := r.lastUntil(l.EndNS)
	own := last != 0 && r.end(last) == l.EndNS && r.id(last) == l.ID && !r.isLink(last)
	l.Cost = min(l.Cost, int64(mostUsed-r.sumFrom(r.first())))
	switch {
	case own && !l.Link:
		r.addCost(last, uint64(l.Cost))
	case own:
		r.append(last, r.write(l))
	default:
		r.enter(r.write(l), last)
	}
}

// enter puts a lease behind another into the list, and into the trees. leave undoes that.
func (r leases) enter(n, before node) {
	next := r.next(before)
	r.chain(before, nextAt, n)
	r.chain(n, previousAt, before)
	r.chain(n, nextAt, next)
	r.chain(next, previousAt, n)
	r.st.Ring[totalWord] += r.sum(n)
	switch {
	case r.hasTrees():
		r.index(n, byEnd)
	case r.inUse() > fewLeases:
		for n := r.next(0); n != 0; n = r.next(n) {
			r.index(n, byEnd)
		}
	}
}

func (r leases) leave(n node) {
	cost := r.cost(n)
	r.unindex(n, byEnd)
	*r.word(n, sumWord) = cost
	r.st.Ring[totalWord] -= cost
	before, next := r.previous(n), r.next(n)
	r.chain(before, nextAt, next)
	r.chain(next, previousAt, before)
}

// addCost adds to a lease's cost. It may add a negative number, as sums wrap.
func (r leases) addCost(n node, cost uint64) {
	r.st.Ring[totalWord] += cost
	r.addSum(n, cost)
}

// append adds a link to a lease. The first one also has the number of the last, in its sumWord.
func (r leases) append(lease, link node) {
	first := r.firstLink(lease)
	if first == 0 {
		first = link
		r.chain(lease, linkAt, link)
	} else {
		r.chain(node(r.sum(first)), nextAt, link)
	}
	*r.word(first, sumWord) = uint64(link)
}

// write puts a lease into a new node.
func (r leases) write(l Lease) node {
	n := r.take()
	words := r.words(n)
	*words = [leaseWords]uint64{endWord: l.EndNS, sumWord: uint64(l.Cost), takenWord: l.TakenNS}
	r.identify(n, l)
	return n
}

// identify sets all of a lease but its time and its cost.
func (r leases) identify(n node, l Lease) {
	id := l.ID << 2
	if l.Bound {
		id |= isBound
	}
	if l.Link {
		id |= isLink
	}
	*r.word(n, idWord), *r.word(n, nameWord), *r.word(n, nameWord+1) = id, l.Name[0], l.Name[1]
}

// isIn reports whether a lease has what it is found by in a tree. A link has not.
func (r leases) isIn(t tree, n node) bool {
	return t == byEnd || !r.isLink(n) && r.key(t, n).of != [2]uint64{}
}

// refill makes leases, which are in the order of their ends, all that there are. There must be room.
func (r leases) refill(all []Lease) {
	r.clear()
	for _, l := range all {
		r.add(l)
	}
}

// fit makes room for so many more: that of leases that are no more, or else a ring of twice the size. It returns by how many words the ring
// has grown.
func (r leases) fit(more int) (words int) {
	for !r.fits(more) {
		n := r.next(0)
		if n == 0 || r.end(n) >= r.st.B {
			break
		}
		r.drop(n)
	}
	if r.fits(more) {
		return 0
	}
	n := r.inUse()
	ring := make([]uint64, ringHead+max(2*n, n+more)*leaseWords)
	copy(ring, r.st.Ring)
	words = len(ring) - len(r.st.Ring)
	r.st.Ring = ring
	return words
}

func (r leases) fits(more int) bool { return r.inUse()+more <= r.capacity() }
