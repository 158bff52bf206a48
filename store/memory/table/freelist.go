package table

import "math/bits"

// FreeList hands out the numbers of places in slabs of 512, and takes them back. It is always the lowest slab with a free place
// that gives one: so a shard that shrinks, or comes to hold keys of another kind, has slabs that are empty and can go.
//
// Its owner has the slabs, and keeps in a free place the number of the next free one. Number 0 is none: that place is never
// handed out, so the first slab stays.
type FreeList struct {
	Slabs []slabUse
	Open  []uint64 // a bit for each slab: some place is free, or the slab is not there
	Low   int      // the words of Open below are 0
	InUse int      // places
	There int      // slabs
	spare int      // the last slab that became empty, which stays for what comes next; 0: none
}

// slabUse counts the places of a slab. The zero value is a slab that is not there.
type slabUse struct {
	There bool
	Used  uint16 // places in use
	Fresh uint16 // the first that has never been used
	Free  uint32 // the first that has been, or 0
}

// lowest returns the slab that gives the next place. If it is not there, its owner makes it and calls add.
func (p *FreeList) lowest() (k int, there bool) {
	for ; p.Low < len(p.Open); p.Low++ {
		if word := p.Open[p.Low]; word != 0 {
			k = p.Low*64 + bits.TrailingZeros64(word)
			return k, p.Slabs[k].There
		}
	}
	return len(p.Slabs), false
}

func (p *FreeList) add(k int) {
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

func (p *FreeList) setOpen(k int) {
	p.Open[k/64] |= 1 << (k % 64)
	p.Low = min(p.Low, k/64)
}

// use hands out a place of a slab. If it is not fresh, the owner must call pop with the place that it links to.
func (p *FreeList) use(k int) (n uint32, fresh bool) {
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

// pop makes next the first free place of the slab that has just given another.
func (p *FreeList) pop(k int, next uint32) { p.Slabs[k].Free = next }

// put takes a place back, and returns what it must link to, and a slab that is to go, or 0.
func (p *FreeList) put(n uint32) (next uint32, goes int) {
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
func (p *FreeList) empty(k int) bool { return p.Slabs[k].There && p.Slabs[k].Used == 0 }

// remove notes that a slab is not there any more.
func (p *FreeList) remove(k int) {
	p.Slabs[k] = slabUse{}
	p.There--
}

// idle is how many places are there and not in use.
func (p *FreeList) idle() int { return p.There<<slabBits - p.InUse }
