package table

import "math/bits"

// Places hands out the numbers of places in slabs of 512, and takes them back. It is always the lowest slab with a free place
// that gives one: so a shard that shrinks, or comes to hold keys of another kind, has slabs that are empty and can go.
//
// Its owner has the slabs, and keeps in a free place the number of the next free one. Number 0 is none: that place is never
// handed out, so the first slab stays.
type Places struct {
	Slabs []slabUse
	Open  []uint64 // a bit for each slab: it has a free place, or is not there
	Low   int      // the words of Open below are 0
	InUse int      // places
	There int      // slabs
	spare int      // the last slab that became empty, which stays for what comes next; 0: none
}

// slabUse is what places knows of a slab. The zero value is one that is not there.
type slabUse struct {
	There bool
	Used  uint16 // Places in use
	Fresh uint16 // the first that has never been used
	Free  uint32 // the first that has been, or 0
}

// Lowest returns the slab that gives the next place. If it is not there, its owner makes it and calls add.
func (p *Places) Lowest() (k int, there bool) {
	for ; p.Low < len(p.Open); p.Low++ {
		if word := p.Open[p.Low]; word != 0 {
			k = p.Low*64 + bits.TrailingZeros64(word)
			return k, p.Slabs[k].There
		}
	}
	return len(p.Slabs), false
}

func (p *Places) Add(k int) {
	if k == len(p.Slabs) {
		p.Slabs = append(p.Slabs, slabUse{})
		if k%64 == 0 {
			p.Open = append(p.Open, 0)
		}
		p.setOpen(k)
	}
	p.Slabs[k] = slabUse{There: true}
	if k == 0 {
		p.Slabs[k].Used, p.Slabs[k].Fresh = 1, 1
	}
	p.There++
}

func (p *Places) setOpen(k int) {
	p.Open[k/64] |= 1 << (k % 64)
	p.Low = min(p.Low, k/64)
}

// Take returns a place of a slab. Of one that is not fresh the owner must have popped what it links to.
func (p *Places) Take(k int) (n uint32, fresh bool) {
	u := &p.Slabs[k]
	if u.Used++; u.Used == SlabSize {
		p.Open[k/64] &^= 1 << (k % 64)
	}
	p.InUse++
	if u.Free != 0 {
		return u.Free, false
	}
	u.Fresh++
	return uint32(k)<<slabBits | uint32(u.Fresh-1), true
}

// Pop makes next the first free place of the slab that has just given another.
func (p *Places) Pop(k int, next uint32) { p.Slabs[k].Free = next }

// Put takes a place back, and returns what it must link to, and a slab that is to go, or 0.
func (p *Places) Put(n uint32) (next uint32, goes int) {
	k := int(n >> slabBits)
	u := &p.Slabs[k]
	next, u.Free = u.Free, n
	u.Used--
	p.InUse--
	p.setOpen(k)
	if u.Used > 0 {
		return next, 0
	}
	if spare := p.spare; spare != 0 && spare != k && p.empty(spare) {
		k, goes = min(k, spare), max(k, spare)
	}
	p.spare = k
	return next, goes
}

// empty reports a slab that is there and not used.
func (p *Places) empty(k int) bool { return p.Slabs[k].There && p.Slabs[k].Used == 0 }

// Remove says that a slab is not there any more.
func (p *Places) Remove(k int) {
	p.Slabs[k] = slabUse{}
	p.There--
}

// idle is how many places are there and not in use.
func (p *Places) idle() int { return p.There<<slabBits - p.InUse }
