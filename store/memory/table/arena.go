package table

import (
	"slices"
	"sync/atomic"
)

const (
	slabBits = 9
	SlabSize = 1 << slabBits
)

// arena holds a shard's values of one kind, in slabs of 512 places. It grows by a slab at a time. Values never move, so growing copies
// nothing, and the collector sees one object for 512 values. A free place links to the next.
type arena[T any, P linked[T]] struct {
	slabs      []*[SlabSize]T
	FreePlaces FreeList
	reserve    *reserve[[SlabSize]T] // nil: slabs come from the allocator
	none       *[SlabSize]T          // stands for slabs that were given back

	published atomic.Pointer[[]*[SlabSize]T] // slabs, as readers without a lock see them
}

type linked[T any] interface {
	*T
	link() uint32
	setLink(uint32)
}

func (a *arena[T, P]) At(n uint32) *T { return placeIn(a.slabs[n>>slabBits], n) }

// placeIn is place n of the arena, if the slab is there. Without the condition the compiler would load the first word of the slab, and
// so a cache line that nobody needs, to see whether the slab is nil.
func placeIn[T any](b *[SlabSize]T, n uint32) *T {
	if b == nil {
		return nil
	}
	return &b[n&(SlabSize-1)]
}

// alloc returns a place, which is as it was when it was freed, or all zero.
func (a *arena[T, P]) alloc() (uint32, *T) {
	k, there := a.FreePlaces.lowest()
	if !there {
		if a.reserve != nil {
			a.set(k, a.reserve.newBlock())
		} else {
			a.set(k, new([SlabSize]T))
		}
		a.FreePlaces.add(k)
	}
	n, fresh := a.FreePlaces.use(k)
	p := a.At(n)
	if !fresh {
		a.FreePlaces.pop(k, P(p).link())
	}
	return n, p
}

// free takes a place back, and returns a slab that is to be released, or 0.
func (a *arena[T, P]) free(n uint32) (goes int) {
	next, goes := a.FreePlaces.put(n)
	P(a.At(n)).setLink(next)
	return goes
}

// release gives back an empty slab; 0: there is none.
func (a *arena[T, P]) release(k int) {
	if k != 0 {
		a.FreePlaces.remove(k)
		a.set(k, a.none)
	}
}

// set puts a slab in its place. Others may be looking at the old slice without a lock, so that is not changed.
func (a *arena[T, P]) set(k int, b *[SlabSize]T) {
	if k == len(a.slabs) {
		a.slabs = append(a.slabs, b)
	} else {
		a.slabs = slices.Clone(a.slabs)
		a.slabs[k] = b
	}
	view := a.slabs
	a.published.Store(&view)
}

// Peek returns a place without any lock, or nil. What it holds may be changing.
func (a *arena[T, P]) Peek(n uint32) *T {
	view := a.published.Load()
	if view == nil || int(n>>slabBits) >= len(*view) {
		return nil
	}
	return placeIn((*view)[n>>slabBits], n)
}

// drop forgets all places, and gives their memory back.
func (a *arena[T, P]) drop() {
	a.slabs, a.FreePlaces = nil, FreeList{}
	a.published.Store(nil)
}
