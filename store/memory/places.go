package memory

import "math/bits"

// places hands out the numbers of places in slabs of 512, and takes them back. It is always the lowest slab with a free place
// that gives one: so a shard that shrinks, or comes to hold keys of another kind, has slabs that are empty and can go.
//
// Its owner has the slabs, and keeps in a free place the number of the next free one. Number 0 is none: that place is never
// handed out, so the first slab stays.
type places struct {
	slabs []slabUse
	open  []uint64 // a bit for each slab: it has a free place, or is not there
	low   int      // the words of open below are 0
	inUse int      // places
	there int      // slabs
	spare int      // the last slab that became empty, which stays for what comes next; 0: none
}

// slabUse is what places knows of a slab. The zero value is one that is not there.
type slabUse struct {
	there bool
	used  uint16 // places in use
	fresh uint16 // the first that has never been used
	free  uint32 // the first that has been, or 0
}

// lowest returns the slab that gives the next place. If it is not there, its owner makes it and calls add.
func (p *places) lowest() (k int, there bool) {
	for ; p.low < len(p.open); p.low++ {
		if word := p.open[p.low]; word != 0 {
			k = p.low*64 + bits.TrailingZeros64(word)
			return k, p.slabs[k].there
		}
	}
	return len(p.slabs), false
}

func (p *places) add(k int) {
	if k == len(p.slabs) {
		p.slabs = append(p.slabs, slabUse{})
		if k%64 == 0 {
			p.open = append(p.open, 0)
		}
		p.setOpen(k)
	}
	p.slabs[k] = slabUse{there: true}
	if k == 0 {
		p.slabs[k].used, p.slabs[k].fresh = 1, 1
	}
	p.there++
}

func (p *places) setOpen(k int) {
	p.open[k/64] |= 1 << (k % 64)
	p.low = min(p.low, k/64)
}

// take returns a place of a slab. Of one that is not fresh the owner must have popped what it links to.
func (p *places) take(k int) (n uint32, fresh bool) {
	u := &p.slabs[k]
	if u.used++; u.used == slabSize {
		p.open[k/64] &^= 1 << (k % 64)
	}
	p.inUse++
	if u.free != 0 {
		return u.free, false
	}
	u.fresh++
	return uint32(k)<<slabBits | uint32(u.fresh-1), true
}

// pop makes next the first free place of the slab that has just given another.
func (p *places) pop(k int, next uint32) { p.slabs[k].free = next }

// put takes a place back, and returns what it must link to, and a slab that is to go, or 0.
func (p *places) put(n uint32) (next uint32, goes int) {
	k := int(n >> slabBits)
	u := &p.slabs[k]
	next, u.free = u.free, n
	u.used--
	p.inUse--
	p.setOpen(k)
	if u.used > 0 {
		return next, 0
	}
	if spare := p.spare; spare != 0 && spare != k && p.empty(spare) {
		k, goes = min(k, spare), max(k, spare)
	}
	p.spare = k
	return next, goes
}

// empty reports a slab that is there and not used.
func (p *places) empty(k int) bool { return p.slabs[k].there && p.slabs[k].used == 0 }

// remove says that a slab is not there any more.
func (p *places) remove(k int) {
	p.slabs[k] = slabUse{}
	p.there--
}

// idle is how many places are there and not in use.
func (p *places) idle() int { return p.there<<slabBits - p.inUse }
