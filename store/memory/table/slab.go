package table

import "sync/atomic"

const (
	slabBits = 9
	SlabSize = 1 << slabBits // slots: 24 KB, which is a size the allocator has
)

type slab [SlabSize]Slot

// Slabs are a shard's slots. They grow by a slab at a time and never move, so that growing copies nothing; and the
// collector sees one object without pointers for 512 keys.
type slabs struct {
	memory *Reserves
	slabs  []*slab // noSlab where it was given back
	Places Places
	Top    uint32 // slots from here on have never been used

	seen atomic.Pointer[[]*slab] // slabs, for those who look without a lock
}

// noSlab stands for slabs that were given back, for those who look at slots without knowing whether they are there. All its
// slots are free, and nobody writes to it.
var noSlab slab

func (s *slabs) At(n uint32) *Slot { return s.slabs[n>>slabBits].at(n) }

// At is slot n of the store, if the slab is there. The condition is for the compiler, which would otherwise load the first word of
// the slab, and so a cache line that nobody needs, to see whether the slab is nil.
func (b *slab) at(n uint32) *Slot {
	if b == nil {
		return nil
	}
	return &b[n&(SlabSize-1)]
}

// Take returns a slot that is all zero but for flagJournaled.
func (s *slabs) Take() (uint32, *Slot) {
	k, there := s.Places.Lowest()
	if !there {
		s.set(k, s.memory.slabs.take())
		s.Places.Add(k)
	}
	n, fresh := s.Places.Take(k)
	e := s.At(n)
	if !fresh {
		s.Places.Pop(k, e.older())
		e.use = 0
	}
	s.Top = max(s.Top, n+1)
	return n, e
}

func (s *slabs) Put(n uint32, e *Slot) {
	next, goes := s.Places.Put(n)
	e.use, e.end = uint64(next), 0
	e.SetInfo(^uint64(FlagBusy|FlagJournaled), 0)
	if goes != 0 {
		s.release(goes)
	}
}

// release gives back an empty slab, unless the journal has some of its slots: then it goes when the last of them is told.
func (s *slabs) release(k int) {
	for i := SlabSize - 1; i >= 0; i-- {
		if s.slabs[k][i].Has(FlagJournaled) {
			return
		}
	}
	s.Places.Remove(k)
	s.set(k, &noSlab)
}

// Told is called for a free slot that is in the journal no longer.
func (s *slabs) Told(n uint32) {
	if k := int(n >> slabBits); k != 0 && k != s.Places.spare && s.Places.empty(k) {
		s.release(k)
	}
}

// set puts a slab in its place. Others may be looking at the old slice without a lock, so that is not changed.
func (s *slabs) set(k int, b *slab) {
	s.slabs = withSlab(s.slabs, k, b)
	view := s.slabs
	s.seen.Store(&view)
}

// Next returns the first slot in use from n up. It looks at so many slots at most, of which a slab without any in use
// counts as one, and says how many of these are left: 0 if it found none, and then where it stopped.
func (s *slabs) Next(n uint32, tries int) (slot uint32, left int) {
	for ; n < s.Top && tries > 0; tries-- {
		switch {
		case s.Places.Slabs[n>>slabBits].Used == 0:
			n = n | (SlabSize - 1) + 1
		case s.At(n).List() != FreeList:
			return n, tries
		default:
			n++
		}
	}
	return n, 0
}

// Peek returns a slot without any lock, or nil. It may be another key's by now, or nobody's.
func (s *slabs) Peek(n uint32) *Slot {
	view := s.seen.Load()
	if view == nil || int(n>>slabBits) >= len(*view) {
		return nil
	}
	return (*view)[n>>slabBits].at(n)
}

// drop forgets all slots, and gives their memory back.
func (s *slabs) drop() {
	s.slabs, s.Places, s.Top = nil, Places{}, 0
	s.seen.Store(nil)
}
