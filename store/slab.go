package store

import "sync/atomic"

const (
	slabBits = 9
	slabSize = 1 << slabBits // slots: 24 KB, which is a size the allocator has
)

type slab [slabSize]slot

// slabs are a shard's slots. They grow by a slab at a time and never move, so that growing copies nothing; and the
// collector sees one object without pointers for 512 keys.
type slabs struct {
	memory *memory
	slabs  []*slab
	used   []uint16                // slots in use in each slab
	top    uint32                  // slots from here on have never been used; 0, or more than noSlot
	free   uint32                  // the first free slot below top; the next is its older(), the one before it its younger()
	seen   atomic.Pointer[[]*slab] // slabs, for those who look without a lock
}

func (s *slabs) at(n uint32) *slot { return &s.slabs[n>>slabBits][n&(slabSize-1)] }

// take returns a slot that is all zero but for flagJournaled.
func (s *slabs) take() (uint32, *slot) {
	n := s.free
	if n == noSlot {
		n = max(s.top, noSlot+1)
		if int(n>>slabBits) == len(s.slabs) {
			s.slabs, s.used = append(s.slabs, s.memory.slabs.take()), append(s.used, 0)
			view := s.slabs
			s.seen.Store(&view)
		}
		s.top = n + 1
	}
	e := s.at(n)
	if n == s.free {
		s.free = e.older()
		e.use &= flagJournaled
	}
	s.used[n>>slabBits]++
	return n, e
}

func (s *slabs) put(n uint32, e *slot) {
	e.use, e.end = e.use&flagJournaled, 0
	s.pushFree(n, e)
	s.used[n>>slabBits]--
}

func (s *slabs) pushFree(n uint32, e *slot) {
	e.setOlder(s.free)
	if s.free != noSlot {
		s.at(s.free).setYounger(n)
	}
	s.free = n
}

// prefer has the next take return this slot, if it is free.
func (s *slabs) prefer(n uint32) {
	if n == s.free || n >= s.top || s.at(n).list() != freeList {
		return
	}
	e := s.at(n)
	s.at(e.younger()).setOlder(e.older())
	if e.older() != noSlot {
		s.at(e.older()).setYounger(e.younger())
	}
	s.pushFree(n, e)
}

// next returns the first slot in use from n up. It looks at so many slots at most, of which a slab without any in use
// counts as one, and says how many of these are left: 0 if it found none, and then where it stopped.
func (s *slabs) next(n uint32, tries int) (slot uint32, left int) {
	for ; n < s.top && tries > 0; tries-- {
		switch {
		case s.used[n>>slabBits] == 0:
			n = n | (slabSize - 1) + 1
		case s.at(n).list() != freeList:
			return n, tries
		default:
			n++
		}
	}
	return n, 0
}

// peek returns a slot without any lock, or nil. All that may be done with it is to touch it.
func (s *slabs) peek(n uint32) *slot {
	view := s.seen.Load()
	if view == nil || int(n>>slabBits) >= len(*view) {
		return nil
	}
	return &(*view)[n>>slabBits][n&(slabSize-1)]
}

// drop forgets all slots, and gives their memory back.
func (s *slabs) drop() {
	s.slabs, s.used, s.top, s.free = nil, nil, 0, noSlot
	s.seen.Store(nil)
}
