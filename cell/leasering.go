package cell

// leases are the ring of a state. A lease is found by its end, its ID and its name in as many steps as a binary search takes: see leaseTree.
//
// Leases that have ended may still lie there. Those that end before State.B are no more: fit takes their room when more is needed, a few
// at a time. So 65,536 leases that end at one instant need not be removed at one instant.
//
// A state of leases is that of an algo=conc, or the companion of another limit's state: the leases that were taken from it. What ends
// there is given back to the limit by GiveBack.
type leases struct{ st *State }

// The ring begins with ringHead words, and then has leaseWords for each node: a lease, or one of its links. Node 0 is none.
const (
	ringHead   = 2 // the roots of the trees; and the nodes that were ever used, those in use, and the first that is free
	leaseWords = 10
)

// The words of a node. Its name is the two from nameWord on, and its places in the trees are the three from treeWord on.
const (
	endWord   = 0
	sumWord   = 1 // of its costs and those of all nodes below it in the tree by end
	idWord    = 2 // ID<<2 | Link<<1 | Bound
	takenWord = 3
	nameWord  = 4
	treeWord  = 6
	chainWord = 9 // of a lease: its first and its last link; of a link and of a free node: the next
)

// words are those of a node.
func (r leases) words(n node) *[leaseWords]uint64 {
	return (*[leaseWords]uint64)(r.st.Ring[ringHead+(int(n)-1)*leaseWords:])
}

func (r leases) word(n node, word int) *uint64 { return &r.words(n)[word] }

func (r leases) end(n node) uint64  { return *r.word(n, endWord) }
func (r leases) id(n node) uint64   { return *r.word(n, idWord) >> 2 }
func (r leases) isLink(n node) bool { return *r.word(n, idWord)&2 != 0 }
func (r leases) name(n node) [2]uint64 {
	return [2]uint64{*r.word(n, nameWord), *r.word(n, nameWord+1)}
}

func (r leases) firstLink(n node) node { return node(*r.word(n, chainWord) & refMask) }
func (r leases) lastLink(n node) node  { return node(*r.word(n, chainWord) >> refBits & refMask) }

func (r leases) chain(n, first, last node) {
	*r.word(n, chainWord) = uint64(first) | uint64(last)<<refBits
}

// The second word of the ring.
func (r leases) used() int  { return r.count(0) }
func (r leases) inUse() int { return r.count(1) }
func (r leases) free() node { return node(r.count(2)) }

func (r leases) count(nth int) int {
	if r.st.Ring == nil {
		return 0
	}
	return int(r.st.Ring[1] >> (nth * refBits) & refMask)
}

func (r leases) setCounts(used, inUse int, free node) {
	r.st.Ring[1] = uint64(used) | uint64(inUse)<<refBits | uint64(free)<<(2*refBits)
}

func (r leases) capacity() int { return max(0, len(r.st.Ring)-ringHead) / leaseWords }

// clear forgets all leases.
func (r leases) clear() {
	if r.st.B = 0; r.st.Ring != nil {
		r.st.Ring[0], r.st.Ring[1] = 0, 0
	}
}

// take returns a node that is free. There must be one: see fit.
func (r leases) take() (n node) {
	if n = r.free(); n != 0 {
		r.setCounts(r.used(), r.inUse()+1, r.firstLink(n))
		return n
	}
	r.setCounts(r.used()+1, r.inUse()+1, 0)
	return node(r.used())
}

// first is the lease that ends first, 0 if there is none.
func (r leases) first() node { return r.endingFrom(r.st.B) }

// firstAfter is the first lease that has not ended.
func (r leases) firstAfter(now uint64) node { return r.endingFrom(max(r.st.B, now+1)) }

// lastEnd is when the last of all ends; 0: there is none.
func (r leases) lastEnd() uint64 {
	if n := r.outermost(byEnd, right); n != 0 && r.end(n) >= r.st.B {
		return r.end(n)
	}
	return 0
}

// sumFrom is the sum of the costs from a lease on; of none it is 0.
func (r leases) sumFrom(n node) uint64 {
	if n == 0 {
		return 0
	}
	return r.sum(r.root(byEnd)) - r.sumBefore(n)
}

func (r leases) lease(n node) Lease { return r.leaseOf(n, r.cost(n)) }

// leaseOf is lease for a caller who knows the cost.
func (r leases) leaseOf(n node, cost uint64) Lease {
	flags := *r.word(n, idWord) & 3
	return Lease{
		ID: r.id(n), EndNS: r.end(n), TakenNS: *r.word(n, takenWord), Cost: int64(cost),
		Bound: flags&1 != 0, Link: flags&2 != 0, Name: r.name(n),
	}
}

// each yields the leases, the first to end first, and behind each its links.
func (r leases) each(yield func(Lease) bool) {
	for n := r.first(); n != 0; n = r.next(byEnd, n) {
		l := r.lease(n)
		if !yield(l) {
			return
		}
		for link := r.firstLink(n); link != 0 && !l.Link; link = r.firstLink(link) {
			if !yield(Lease{ID: r.id(link), EndNS: l.EndNS, Bound: *r.word(link, idWord)&1 != 0, Link: true, Name: r.name(link)}) {
				return
			}
		}
	}
}

// find returns where the lease of an ID is, or 0.
func (r leases) find(id uint64) node {
	if n := r.seek(byID, key{id, r.st.B}); n != 0 && r.id(n) == id {
		return n
	}
	return 0
}

// dropEnded forgets the leases that have ended.
func (r leases) dropEnded(now uint64) {
	if r.firstAfter(now) == 0 {
		r.clear()
	} else if r.end(r.first()) <= now {
		r.st.B = now + 1
	}
}

// drop forgets a lease and its links.
func (r leases) drop(n node) {
	gone, last := 1, n
	if !r.isLink(n) {
		for link := r.firstLink(n); link != 0; link = r.firstLink(link) {
			gone, last = gone+1, link
		}
	}
	r.unindex(n)
	r.remove(byEnd, n)
	*r.word(n, treeWord+int(byEnd)) = 0
	r.chain(last, r.free(), 0)
	r.setCounts(r.used(), r.inUse()-gone, n)
}

// add puts a lease behind all others that end no later. One of the same ID that ends at the same time becomes part of that, and a link
// part of the lease before it. There must be room: see fit.
func (r leases) add(l Lease) {
	l.EndNS = max(l.EndNS, r.st.B) // one that would end before it is added ends now
	last := r.lastUntil(l.EndNS)
	own := last != 0 && r.end(last) == l.EndNS && r.id(last) == l.ID && !r.isLink(last)
	if r.sum(r.root(byEnd))+uint64(l.Cost) > mostUsed { // of which some may be of leases that are no more
		l.Cost = min(l.Cost, int64(mostUsed-r.sumFrom(r.first())))
	}
	if own && !l.Link {
		r.addCost(last, uint64(l.Cost))
		return
	}
	n := r.write(l)
	if own {
		r.append(last, n)
		return
	}
	r.insert(byEnd, n)
	r.addCost(n, uint64(l.Cost))
	r.index(n)
}

// append adds a link to a lease.
func (r leases) append(lease, link node) {
	if last := r.lastLink(lease); last != 0 {
		r.chain(last, link, 0)
		r.chain(lease, r.firstLink(lease), link)
	} else {
		r.chain(lease, link, link)
	}
}

// write puts all of a lease but its cost into a new node.
func (r leases) write(l Lease) node {
	n := r.take()
	*r.word(n, endWord), *r.word(n, takenWord), *r.word(n, chainWord) = l.EndNS, l.TakenNS, 0
	*r.word(n, treeWord+int(byEnd)) = 0 // it is in no tree yet
	r.identify(n, l)
	return n
}

// identify sets all of a lease but its time and its cost.
func (r leases) identify(n node, l Lease) {
	id := l.ID << 2
	if l.Bound {
		id |= 1
	}
	if l.Link {
		id |= 2
	}
	*r.word(n, idWord), *r.word(n, nameWord), *r.word(n, nameWord+1) = id, l.Name[0], l.Name[1]
}

// index makes a lease be found by its ID and by its name, if it has them, and unindex undoes that.
func (r leases) index(n node) {
	for _, t := range []tree{byID, byName} {
		if r.isIn(t, n) {
			r.insert(t, n)
		}
	}
}

func (r leases) unindex(n node) {
	for _, t := range []tree{byID, byName} {
		if r.isIn(t, n) {
			r.remove(t, n)
		}
	}
}

// isIn reports whether a lease is in a tree.
func (r leases) isIn(t tree, n node) bool {
	switch {
	case t == byEnd:
		return true
	case r.isLink(n):
		return false
	case t == byID:
		return r.id(n) != 0
	}
	return r.name(n) != [2]uint64{}
}

// refill makes leases, which are in the order of their ends, all that there are. There must be room.
func (r leases) refill(all []Lease) {
	r.clear()
	nodes := make([]node, 0, len(all))
	for _, l := range all {
		n := r.write(l)
		if l.Link && len(nodes) > 0 {
			if last := nodes[len(nodes)-1]; r.id(last) == l.ID && r.end(last) == l.EndNS && !r.isLink(last) {
				r.append(last, n)
				continue
			}
		}
		*r.word(n, sumWord) = uint64(l.Cost)
		nodes = append(nodes, n)
	}
	r.build(nodes)
}

// fit makes room for so many more: that of leases that are no more, or else a ring of twice the size. It returns by how many words the ring
// has grown.
func (r leases) fit(more int) (words int) {
	for !r.fits(more) {
		n := r.outermost(byEnd, left)
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
