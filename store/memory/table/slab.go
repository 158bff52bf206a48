package table

type slab = [SlabSize]Slot // 24 KB, which is a size the allocator has

// slabs are a shard's slots.
type slabs struct {
	arena[Slot, *Slot]
	Top      uint32             // slots from here on have never been used
	expiries []*[SlabSize]int64 // beside the slabs that have some, the ExpiryNS that are instants, in wall time
}

func (s *slabs) expiry(n uint32) int64 { return s.expiries[n>>slabBits][n&(SlabSize-1)] }

// SetExpiry notes the expiry of a slot with FlagExpiry.
func (s *slabs) SetExpiry(n uint32, ns int64) {
	k := int(n >> slabBits)
	s.expiries = append(s.expiries, make([]*[SlabSize]int64, max(0, k+1-len(s.expiries)))...)
	if s.expiries[k] == nil {
		s.expiries[k] = new([SlabSize]int64)
	}
	s.expiries[k][n&(SlabSize-1)] = ns
}

// noSlab stands for slabs that were given back, for those who look at slots without knowing whether they are there. All its
// slots are free, and nobody writes to it.
var noSlab slab

// Alloc returns a slot that is all zero except FlagJournaled.
func (s *slabs) Alloc() (uint32, *Slot) {
	n, e := s.alloc()
	e.use = 0
	s.Top = max(s.Top, n+1)
	return n, e
}

// Free takes a slot back, whose key is gone.
func (s *slabs) Free(n uint32, e *Slot) {
	e.end = 0
	e.SetInfo(^uint64(FlagBusy|FlagJournaled), 0)
	if goes := s.free(n); goes != 0 {
		s.release(goes)
	}
}

// release gives back an empty slab. If the journal still lists some of its slots, the slab goes when the last of them is told.
func (s *slabs) release(k int) {
	for i := range SlabSize {
		if s.slabs[k][i].Has(FlagJournaled) {
			return
		}
	}
	s.arena.release(k)
	if k < len(s.expiries) {
		s.expiries[k] = nil
	}
}

// Told is called for a free slot that is in the journal no longer.
func (s *slabs) Told(n uint32) {
	if k := int(n >> slabBits); k != 0 && k != s.FreePlaces.spare && s.FreePlaces.empty(k) {
		s.release(k)
	}
}

// Next returns the first slot in use from n up. It looks at so many slots at most, of which a slab without any in use
// counts as one, and says how many of these are left: 0 if it found none, and then where it stopped.
func (s *slabs) Next(n uint32, tries int) (slot uint32, left int) {
	for ; n < s.Top && tries > 0; tries-- {
		switch {
		case s.FreePlaces.Slabs[n>>slabBits].Used == 0:
			n = n | (SlabSize - 1) + 1
		case s.At(n).List() != NoList:
			return n, tries
		default:
			n++
		}
	}
	return n, 0
}

// drop forgets all slots.
func (s *slabs) drop() {
	s.arena.drop()
	s.Top, s.expiries = 0, nil
}
