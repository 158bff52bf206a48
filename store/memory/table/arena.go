package table

import (
	"slices"
	"sync/atomic"
)

const (
	slabBits = 9
	SlabSize = 1 << slabBits
)

// arena is a shard's places for one kind of value, in slabs. It grows by a slab at a time, and values never move, so that growing copies
// nothing; and the collector sees one object for 512 of them. A free place links to the next.
type arena[T any, P linked[T]] struct {
	slabs   []*[SlabSize]T
	Places  Places
	reserve *reserve[[SlabSize]T] // nil: slabs come from the allocator
	none    *[SlabSize]T          // stands for slabs that were given back

	seen atomic.Pointer[[]*[SlabSize]T] // slabs, for those who look without a lock
}

type linked[T any] interface {
	*T
	link() uint32
	setLink(uint32)
}

func (a *arena[T, P]) At(n uint32) *T { return placeIn(a.slabs[n>>slabBits], n) }

// placeIn is place n of the arena, if the slab is there. The condition is for the compiler, which would otherwise load the first word of
// the slab, and so a cache line that nobody needs, to see whether the slab is nil.
func placeIn[T any](b *[SlabSize]T, n uint32) *T {
	if b == nil {
		return nil
	}
	return &b[n&(SlabSize-1)]
}

// take returns a place, which is as it was when it was put back, or all zero.
func (a *arena[T, P]) take() (uint32, *T) {
	k, there := a.Places.Lowest()
	if !there {
		if a.reserve != nil {
			a.set(k, a.reserve.take())
		} else {
			a.set(k, new([SlabSize]T))
		}
		a.Places.Add(k)
	}
	n, fresh := a.Places.Take(k)
	p := a.At(n)
	if !fresh {
		a.Places.Pop(k, P(p).link())
	}
	return n, p
}

// put takes a place back, and returns a slab that is to be released, or 0.
func (a *arena[T, P]) put(n uint32) (goes int) {
	next, goes := a.Places.Put(n)
	P(a.At(n)).setLink(next)
	return goes
}

// release gives back an empty slab; 0: there is none.
func (a *arena[T, P]) release(k int) {
	if k != 0 {
		a.Places.Remove(k)
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
	a.seen.Store(&view)
}

// Peek returns a place without any lock, or nil. What it holds may be changing.
func (a *arena[T, P]) Peek(n uint32) *T {
	view := a.seen.Load()
	if view == nil || int(n>>slabBits) >= len(*view) {
		return nil
	}
	return placeIn((*view)[n>>slabBits], n)
}

// drop forgets all places, and gives their memory back.
func (a *arena[T, P]) drop() {
	a.slabs, a.Places = nil, Places{}
	a.seen.Store(nil)
}
