package cell

import "cmp"

// Leases of which there are more than fewLeases are in three trees, which have the same nodes: by end, by ID and by name. They are AVL
// trees: with 65,536 leases none is more than 23 steps from the root. Nodes do not move in the ring, so a tree's change leaves the other
// trees as they are.
//
// The tree by end also has sums of costs, so that the same steps find what is in use from an instant on, and when a call passes.

// fewLeases is how many leases and links need no trees. With trees a TAKE and its RELEASE among so many take 1.1 to 1.2 times as long.
const fewLeases = 32

type tree int

const (
	byEnd  tree = iota
	byID        // leases with an ID
	byName      // leases with a name
)

// A word of a node has its place in a tree: refBits each for the node to the left, the one to the right and the one above, and then the
// height.
const (
	left, right, above = 0, refBits, 2 * refBits
	heightAt           = 3 * refBits
)

// hasTrees reports whether the leases are in trees. If not, no node has another to its left or right, or above it.
func (r leases) hasTrees() bool { return r.root(byEnd) != 0 }

func (r leases) ref(t tree, n node, at int) node {
	return node(*r.word(n, treeWord+int(t)) >> at & refMask)
}

func (r leases) setRef(t tree, n node, at int, to node) {
	word := r.word(n, treeWord+int(t))
	*word = *word&^(refMask<<at) | uint64(to)<<at
}

func (r leases) height(t tree, n node) int {
	if n == 0 {
		return 0
	}
	return int(*r.word(n, treeWord+int(t)) >> heightAt)
}

func (r leases) setHeight(t tree, n node, h int) {
	word := r.word(n, treeWord+int(t))
	*word = *word&(1<<heightAt-1) | uint64(h)<<heightAt
}

// measure sets the height of a node by those below it.
func (r leases) measure(t tree, n node) {
	r.setHeight(t, n, 1+max(r.height(t, r.ref(t, n, left)), r.height(t, r.ref(t, n, right))))
}

func (r leases) root(t tree) node {
	if r.st.Ring == nil {
		return 0
	}
	return node(r.st.Ring[rootsWord] >> (int(t) * refBits) & refMask)
}

// key is what a tree is ordered by: by what a lease is found by, and by its end. Where nodes have equal keys, these are in the order in
// which they came.
type key struct {
	of  [2]uint64 // the ID or the name
	end uint64
}

func (k *key) compare(with *key) int {
	switch {
	case k.of[0] != with.of[0]:
		return cmp.Compare(k.of[0], with.of[0])
	case k.of[1] != with.of[1]:
		return cmp.Compare(k.of[1], with.of[1])
	}
	return cmp.Compare(k.end, with.end)
}

func (r leases) key(t tree, n node) key {
	words := r.words(n)
	k := key{end: words[endWord]}
	switch t {
	case byID:
		k.of[0] = words[idWord] >> 2
	case byName:
		k.of = [2]uint64(words[nameWord:])
	}
	return k
}

// seek is the first node whose key is not lower, 0 if there is none.
func (r leases) seek(t tree, k key) (found node) {
	for n := r.root(t); n != 0; {
		if at := r.key(t, n); at.compare(&k) < 0 {
			n = r.ref(t, n, right)
		} else {
			found, n = n, r.ref(t, n, left)
		}
	}
	return found
}

// sum is the sum of the costs of a node of the tree by end and of all below it.
func (r leases) sum(n node) uint64 {
	if n == 0 {
		return 0
	}
	return *r.word(n, sumWord)
}

func (r leases) cost(n node) uint64 {
	return r.sum(n) - r.sum(r.ref(byEnd, n, left)) - r.sum(r.ref(byEnd, n, right))
}

// addSum adds to the sums that a lease's cost is part of.
func (r leases) addSum(n node, cost uint64) {
	for ; n != 0; n = r.ref(byEnd, n, above) {
		*r.word(n, sumWord) += cost
	}
}

// treeBefore is sumBefore, and treeWithSum is withSum.
func (r leases) treeBefore(n node) uint64 {
	sum := r.sum(r.ref(byEnd, n, left))
	for up := r.ref(byEnd, n, above); up != 0; n, up = up, r.ref(byEnd, up, above) {
		if r.ref(byEnd, up, right) == n {
			sum += r.sum(up) - r.sum(n)
		}
	}
	return sum
}

func (r leases) treeWithSum(sum uint64) node {
	for n := r.root(byEnd); ; {
		before, cost := r.sum(r.ref(byEnd, n, left)), r.cost(n)
		switch {
		case sum <= before:
			n = r.ref(byEnd, n, left)
		case sum <= before+cost:
			return n
		default:
			sum -= before + cost
			n = r.ref(byEnd, n, right)
		}
	}
}

// insert puts a node behind all whose keys are not higher.
func (r leases) insert(t tree, n node) {
	k, up, side := r.key(t, n), node(0), left
	for at := r.root(t); at != 0; at = r.ref(t, up, side) {
		up, side = at, left
		if atKey := r.key(t, at); atKey.compare(&k) <= 0 {
			side = right
		}
	}
	*r.word(n, treeWord+int(t)) = 1 << heightAt
	r.hang(t, up, side, n)
	if t == byEnd {
		r.addSum(up, r.sum(n))
	}
	r.balance(t, up)
}

// index puts a lease into the trees from one on, and unindex undoes that. Only byEnd may be the first tree that there is.
func (r leases) index(n node, from tree) {
	for t := from; t <= byName; t++ {
		if (t == byEnd || r.hasTrees()) && r.isIn(t, n) {
			r.insert(t, n)
		}
	}
}

func (r leases) unindex(n node, from tree) {
	for t := byName; t >= from && r.hasTrees(); t-- {
		if r.isIn(t, n) {
			r.remove(t, n)
		}
	}
}

// hang makes n a child of up; of none it makes it the root.
func (r leases) hang(t tree, up node, side int, n node) {
	if up == 0 {
		at := int(t) * refBits
		r.st.Ring[rootsWord] = r.st.Ring[rootsWord]&^(refMask<<at) | uint64(n)<<at
	} else {
		r.setRef(t, up, side, n)
	}
	if n != 0 {
		r.setRef(t, n, above, up)
	}
}

// replace puts n where was is.
func (r leases) replace(t tree, was, n node) {
	up, side := r.over(t, was)
	r.hang(t, up, side, n)
}

// over is the node above n, and the side of it that n is on.
func (r leases) over(t tree, n node) (up node, side int) {
	if up = r.ref(t, n, above); up != 0 && r.ref(t, up, right) == n {
		return up, right
	}
	return up, left
}

// remove takes a node out of a tree. Where it has nodes on both sides below it, the next one takes its place.
func (r leases) remove(t tree, n node) {
	if t == byEnd {
		r.addSum(n, -r.cost(n))
	}
	low, high := r.ref(t, n, left), r.ref(t, n, right)
	if low == 0 || high == 0 {
		up := r.ref(t, n, above)
		r.replace(t, n, max(low, high))
		r.balance(t, up)
		return
	}
	heir := high
	for to := high; to != 0; to = r.ref(t, to, left) {
		heir = to
	}
	cost := r.cost(heir)
	r.remove(t, heir)
	*r.word(heir, treeWord+int(t)) = *r.word(n, treeWord+int(t))
	r.replace(t, n, heir)
	r.hang(t, heir, left, r.ref(t, n, left))
	r.hang(t, heir, right, r.ref(t, n, right))
	if t == byEnd {
		*r.word(heir, sumWord) = r.sum(n)
		r.addSum(heir, cost)
	}
}

// balance corrects the heights from n on upwards, and turns where those of two sides differ by more than one.
func (r leases) balance(t tree, n node) {
	for n != 0 {
		side, was := left, r.height(t, n)
		low, high := r.height(t, r.ref(t, n, left)), r.height(t, r.ref(t, n, right))
		r.setHeight(t, n, 1+max(low, high))
		by := low - high
		if by < 0 {
			side, by = right, -by
		}
		if by > 1 {
			child := r.ref(t, n, side)
			if inner := r.ref(t, child, right-side); r.height(t, inner) > r.height(t, r.ref(t, child, side)) {
				r.raise(t, inner)
			}
			n = r.ref(t, n, side)
			r.raise(t, n)
		}
		if r.height(t, n) == was {
			return
		}
		n = r.ref(t, n, above)
	}
}

// raise turns n and the node above it, so that n is above that.
func (r leases) raise(t tree, n node) {
	down, side := r.over(t, n)
	inner := r.ref(t, n, right-side)
	if t == byEnd {
		all := r.sum(down)
		*r.word(down, sumWord) = all - r.sum(n) + r.sum(inner)
		*r.word(n, sumWord) = all
	}
	r.replace(t, down, n)
	r.hang(t, down, side, inner)
	r.hang(t, n, right-side, down)
	r.measure(t, down)
	r.measure(t, n)
}
