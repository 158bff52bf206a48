package lease

import "cmp"

// More than a few leases are in three trees of the same nodes: by expiry, by ID and by name. They are AVL trees: with 65,536 leases none is
// more than 23 steps from the root. Nodes do not move in the ring, so a change of one tree leaves the others as they are.
//
// The tree by expiry also has sums of costs. So the same steps find what is in use from an instant on, and when a call passes.

// few is how many leases and links need no trees. With trees a TAKE and its RELEASE among so many take 1.1 to 1.2 times as long.
const few = 32

type tree int

const (
	byExpiry tree = iota
	byID          // leases with an ID
	byName        // leases with a name
)

// A word of a node is its place in a tree: refBits each for the node to the left, the one to the right and the one above, and then the
// height.
const (
	left, right, above = 0, refBits, 2 * refBits
	heightAt           = 3 * refBits
)

// hasTrees reports whether the leases are in trees. If not, no node has another to its left or right, or above it.
func (s Set) hasTrees() bool { return s.root(byExpiry) != 0 }

func (s Set) ref(t tree, n node, at int) node {
	return node(*s.word(n, treeWord+int(t)) >> at & refMask)
}

func (s Set) setRef(t tree, n node, at int, to node) {
	word := s.word(n, treeWord+int(t))
	*word = *word&^(refMask<<at) | uint64(to)<<at
}

func (s Set) height(t tree, n node) int {
	if n == 0 {
		return 0
	}
	return int(*s.word(n, treeWord+int(t)) >> heightAt)
}

func (s Set) setHeight(t tree, n node, h int) {
	word := s.word(n, treeWord+int(t))
	*word = *word&(1<<heightAt-1) | uint64(h)<<heightAt
}

// measure sets the height of a node by those below it.
func (s Set) measure(t tree, n node) {
	s.setHeight(t, n, 1+max(s.height(t, s.ref(t, n, left)), s.height(t, s.ref(t, n, right))))
}

func (s Set) root(t tree) node {
	if *s.ring == nil {
		return 0
	}
	return node((*s.ring)[rootsWord] >> (int(t) * refBits) & refMask)
}

// key is what a tree is ordered by: what a lease is found by, and its expiry. Nodes with equal keys are in the order in which they were
// added.
type key struct {
	of     [2]uint64 // the ID or the name; 0 in the tree by expiry
	expiry uint64
}

func (k *key) compare(with *key) int {
	switch {
	case k.of[0] != with.of[0]:
		return cmp.Compare(k.of[0], with.of[0])
	case k.of[1] != with.of[1]:
		return cmp.Compare(k.of[1], with.of[1])
	}
	return cmp.Compare(k.expiry, with.expiry)
}

func (s Set) key(t tree, n node) key {
	words := s.words(n)
	k := key{expiry: words[expiryWord]}
	switch t {
	case byID:
		k.of[0] = words[idWord] >> 2
	case byName:
		k.of = [2]uint64(words[nameWord:])
	}
	return k
}

// seek is the first node whose key is not lower, 0 if there is none.
func (s Set) seek(t tree, k key) (found node) {
	for n := s.root(t); n != 0; {
		if at := s.key(t, n); at.compare(&k) < 0 {
			n = s.ref(t, n, right)
		} else {
			found, n = n, s.ref(t, n, left)
		}
	}
	return found
}

// sum is the sum of the costs of a node of the tree by expiry and of all below it.
func (s Set) sum(n node) uint64 {
	if n == 0 {
		return 0
	}
	return *s.word(n, sumWord)
}

func (s Set) cost(n node) uint64 {
	return s.sum(n) - s.sum(s.ref(byExpiry, n, left)) - s.sum(s.ref(byExpiry, n, right))
}

// addSum adds to the sums that contain the cost of a lease.
func (s Set) addSum(n node, cost uint64) {
	for ; n != 0; n = s.ref(byExpiry, n, above) {
		*s.word(n, sumWord) += cost
	}
}

// treeBefore is sumBefore, and treeWithSum is withSum.
func (s Set) treeBefore(n node) uint64 {
	sum := s.sum(s.ref(byExpiry, n, left))
	for up := s.ref(byExpiry, n, above); up != 0; n, up = up, s.ref(byExpiry, up, above) {
		if s.ref(byExpiry, up, right) == n {
			sum += s.sum(up) - s.sum(n)
		}
	}
	return sum
}

func (s Set) treeWithSum(sum uint64) node {
	for n := s.root(byExpiry); ; {
		before, cost := s.sum(s.ref(byExpiry, n, left)), s.cost(n)
		switch {
		case sum <= before:
			n = s.ref(byExpiry, n, left)
		case sum <= before+cost:
			return n
		default:
			sum -= before + cost
			n = s.ref(byExpiry, n, right)
		}
	}
}

// insert puts a node behind all whose keys are not higher.
func (s Set) insert(t tree, n node) {
	k, up, side := s.key(t, n), node(0), left
	for at := s.root(t); at != 0; at = s.ref(t, up, side) {
		up, side = at, left
		if atKey := s.key(t, at); atKey.compare(&k) <= 0 {
			side = right
		}
	}
	*s.word(n, treeWord+int(t)) = 1 << heightAt
	s.hang(t, up, side, n)
	if t == byExpiry {
		s.addSum(up, s.sum(n))
	}
	s.balance(t, up)
}

// index puts a lease into the trees from one on, and unindex undoes that. Only byExpiry may be the first tree that there is.
func (s Set) index(n node, from tree) {
	for t := from; t <= byName; t++ {
		if (t == byExpiry || s.hasTrees()) && s.isIn(t, n) {
			s.insert(t, n)
		}
	}
}

func (s Set) unindex(n node, from tree) {
	for t := byName; t >= from && s.hasTrees(); t-- {
		if s.isIn(t, n) {
			s.remove(t, n)
		}
	}
}

// hang makes n a child of up; of none it makes it the root.
func (s Set) hang(t tree, up node, side int, n node) {
	if up == 0 {
		at := int(t) * refBits
		(*s.ring)[rootsWord] = (*s.ring)[rootsWord]&^(refMask<<at) | uint64(n)<<at
	} else {
		s.setRef(t, up, side, n)
	}
	if n != 0 {
		s.setRef(t, n, above, up)
	}
}

// replace puts n where was is.
func (s Set) replace(t tree, was, n node) {
	up, side := s.over(t, was)
	s.hang(t, up, side, n)
}

// over is the node above n, and the side of it that n is on.
func (s Set) over(t tree, n node) (up node, side int) {
	if up = s.ref(t, n, above); up != 0 && s.ref(t, up, right) == n {
		return up, right
	}
	return up, left
}

// remove takes a node out of a tree. Where it has nodes on both sides below it, the next one takes its place.
func (s Set) remove(t tree, n node) {
	if t == byExpiry {
		s.addSum(n, -s.cost(n))
	}
	low, high := s.ref(t, n, left), s.ref(t, n, right)
	if low == 0 || high == 0 {
		up := s.ref(t, n, above)
		s.replace(t, n, max(low, high))
		s.balance(t, up)
		return
	}
	heir := high
	for to := high; to != 0; to = s.ref(t, to, left) {
		heir = to
	}
	cost := s.cost(heir)
	s.remove(t, heir)
	*s.word(heir, treeWord+int(t)) = *s.word(n, treeWord+int(t))
	s.replace(t, n, heir)
	s.hang(t, heir, left, s.ref(t, n, left))
	s.hang(t, heir, right, s.ref(t, n, right))
	if t == byExpiry {
		*s.word(heir, sumWord) = s.sum(n)
		s.addSum(heir, cost)
	}
}

// balance corrects the heights from n on upwards, and turns where those of two sides differ by more than one.
func (s Set) balance(t tree, n node) {
	for n != 0 {
		side, was := left, s.height(t, n)
		low, high := s.height(t, s.ref(t, n, left)), s.height(t, s.ref(t, n, right))
		s.setHeight(t, n, 1+max(low, high))
		by := low - high
		if by < 0 {
			side, by = right, -by
		}
		if by > 1 {
			child := s.ref(t, n, side)
			if inner := s.ref(t, child, right-side); s.height(t, inner) > s.height(t, s.ref(t, child, side)) {
				s.raise(t, inner)
			}
			n = s.ref(t, n, side)
			s.raise(t, n)
		}
		if s.height(t, n) == was {
			return
		}
		n = s.ref(t, n, above)
	}
}

// raise turns n and the node above it, so that n is above that.
func (s Set) raise(t tree, n node) {
	down, side := s.over(t, n)
	inner := s.ref(t, n, right-side)
	if t == byExpiry {
		all := s.sum(down)
		*s.word(down, sumWord) = all - s.sum(n) + s.sum(inner)
		*s.word(n, sumWord) = all
	}
	s.replace(t, down, n)
	s.hang(t, down, side, inner)
	s.hang(t, n, right-side, down)
	s.measure(t, down)
	s.measure(t, n)
}
